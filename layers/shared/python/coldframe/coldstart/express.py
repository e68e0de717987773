"""The express lane: a cold environment's first answers, before the rest of it is loaded.

What a plain request asks of the estimator needs no more than the standard library. A request
that is anything but plain, or holds a text that the estimator is not sure of, is left to `Api`,
whose answer would be the same: `tests/unit/coldframe/coldstart/test_express.py` compares them.
"""

import binascii
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from coldframe.api.contract import (
    CACHE_COUNTS,
    DEFAULT_TOP_K,
    ENVELOPE_BYTES,
    JSON,
    MAX_BUDGET_MS,
    MAX_TOP_K,
    MIN_BUDGET_MS,
    PREDICT,
    READ_AS_JSON,
    REQUEST_FIELDS,
    SCORE_DIGITS,
    USAGE_COUNTS,
    log_record,
    log_times,
    media_type,
    server_timing,
)
from coldframe.api.gateway_event import read_http
from coldframe.coldstart.lane_model import LaneModel
from coldframe.coldstart.lane_settings import LaneSettings, closed_by, closed_line, has_log
from coldframe.errors import BundleError
from coldframe.model.estimator import temper
from coldframe.model.files import AUTO, served_models
from coldframe.text import normalise
from coldframe.vectors import ranked, to_floats, to_vector

Json = Mapping[str, Any]

_MAX_BODY = 20_000  # characters
_MAX_TEXTS = 64
_FIELDS = frozenset(REQUEST_FIELDS)


class ExpressLane:
    """Answers requests of which it is sure, in an environment that has loaded nothing else."""

    def __init__(self, settings: LaneSettings) -> None:
        """Raises BundleMissing or BundleCorrupt when what it needs of the default model cannot be used."""
        self._settings = settings
        self._names = served_models(settings.model_dir, settings.models)
        self._models = {self._names[0]: LaneModel(settings.model_dir, self._names[0])}
        self._max_texts = min(_MAX_TEXTS, settings.max_texts)
        self._max_body = min(_MAX_BODY, settings.max_body_bytes)
        self.answered = 0

    def answer(self, event: Json, request_id: str) -> dict[str, Any] | None:
        """The function's result for an API Gateway event; None for one that is left to `Api`."""
        started_s = time.perf_counter()
        asked = self._read(event)
        model = self._model(asked)
        if model is None or not _is_plain_request(asked, self._max_texts, model.tokenizer.is_plain):
            return None
        texts = [normalise(text) for text in asked.get("texts") or [asked["text"]]]
        answers = {text: _answer(model, text, asked) for text in dict.fromkeys(texts)}
        if None in answers.values():
            return None
        reply = {
            "model": model.name,
            "version": model.version,
            "start": "warm" if self.answered else "cold",
            "predictions": [
                {"index": index, "heads": {AUTO: answers[text]}} for index, text in enumerate(texts)
            ],
            "usage": self._usage(len(texts), len(answers)),
        }
        body = json.dumps(reply, separators=(",", ":"))
        if 2 * len(body) + ENVELOPE_BYTES > self._settings.max_answer_bytes:
            return None
        self.answered += 1
        total_ms = (time.perf_counter() - started_s) * 1e3
        stages_ms = {"estimate": total_ms}
        if self._settings.has_log:
            self._log(reply, request_id, stages_ms, total_ms)
        headers = {"content-type": JSON, "server-timing": server_timing(stages_ms, total_ms)}
        return {"statusCode": 200, "headers": headers, "body": body, "isBase64Encoded": False}

    def _model(self, asked: Json) -> LaneModel | None:
        """The model asked for, read when it is first asked for; None for one that `Api` has to look at."""
        name = asked.get("model", self._names[0])
        if name not in self._names or not isinstance(name, str):
            return None
        if name not in self._models:
            try:
                self._models[name] = LaneModel(self._settings.model_dir, name)
            except BundleError:
                return None
        return self._models[name]

    def _usage(self, texts: int, unique: int) -> dict[str, Any]:
        """Nothing was looked up: asking the table would take longer, the environment's own is empty."""
        cache = {**dict.fromkeys(CACHE_COUNTS, 0), "miss": unique}
        if self._settings.has_table:
            cache["skipped"] = unique
        counts = {"texts": texts, "unique": unique, "estimated": unique}
        return {**dict.fromkeys(USAGE_COUNTS, 0), **counts, "cache": cache}

    def _log(self, reply: Json, request_id: str, stages_ms: Mapping[str, float], total_ms: float) -> None:
        record = log_record(request_id, *PREDICT, 200, reply["start"])
        named = {"model": reply["model"], "version": reply["version"]}
        line = {**record, **named, "usage": reply["usage"], **log_times(stages_ms, total_ms)}
        print(json.dumps(line, separators=(",", ":")))

    def _read(self, event: Json) -> dict[str, Any]:
        """The object of JSON that a short request sends; of any other request nothing."""
        body = self._body(event)
        try:
            asked = json.loads(body or "", object_pairs_hook=_without_repeats, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return {}
        return asked if isinstance(asked, dict) else {}

    def _body(self, event: Json) -> str | None:
        """The JSON of a `POST /v1/predict`, as far as it is short and ASCII."""
        asked = read_http(event)
        if asked is None or (asked.method, asked.path) != PREDICT:
            return None
        if media_type(asked.headers) not in READ_AS_JSON or "content-encoding" in asked.headers:
            return None
        if len(asked.body) > self._max_body:
            return None
        if asked.is_base64:
            try:
                return binascii.a2b_base64(asked.body).decode("ascii")
            except ValueError:
                return None
        return asked.body if asked.body.isascii() else None


def _answer(model: LaneModel, text: str, asked: Json) -> dict[str, Any] | None:
    """What `auto` says of a text; None unless the estimator is sure."""
    ids = model.tokenizer.ids(text, model.max_tokens)
    evidence = model.estimator.evidence(ids)
    guess = model.estimator.probabilities(evidence)
    if not model.estimator.is_sure(guess, ids):
        return None
    said = temper(guess, model.alone_temperature)
    *values, strangeness = to_floats(to_vector([*said, model.estimator.out_of_distribution(evidence)]))
    best = ranked(values)[: asked.get("top_k", DEFAULT_TOP_K)]
    top = [{"label": model.labels[i], "probability": values[i]} for i in best]
    score = round(strangeness, SCORE_DIGITS)
    answer: dict[str, Any] = {**top[0], "top": top, "out_of_distribution": score}
    if answer["probability"] < asked.get("min_probability", model.min_probability):
        answer |= {"label": None, "abstained": True}
    answer["by"] = "estimator"
    if asked.get("scores"):
        answer["scores"] = dict(zip(model.labels, values, strict=True))
    return answer


def open_lane(environ: Mapping[str, str]) -> ExpressLane | None:
    """The express lane of an on-demand environment; None where everything is loaded at once.

    That is so ahead of traffic, and with settings that only the road understands, which a line in the log
    then names. Raises BundleMissing or BundleCorrupt.
    """
    if environ.get("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand") != "on-demand":
        return None
    if closing := closed_by(environ):
        if has_log(environ):
            print(closed_line(closing))
        return None
    return ExpressLane(LaneSettings(environ))


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Raises ValueError for one that names a field twice, which the road may refuse."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _refuse(constant: str) -> None:
    """NaN and Infinity are no JSON, and Python reads them."""
    raise ValueError(constant)


def _is_plain_request(asked: Json, max_texts: int, is_plain: Callable[[str], bool]) -> bool:
    """Valid beyond doubt, for the head `auto` alone, with texts that the lane can read."""
    texts = asked["texts"] if "texts" in asked else [asked.get("text")]
    top_k, budget_ms = asked.get("top_k", DEFAULT_TOP_K), asked.get("budget_ms", MIN_BUDGET_MS)
    least = asked.get("min_probability", 0)
    return (
        asked.keys() <= _FIELDS
        and ("text" in asked) != ("texts" in asked)
        and isinstance(texts, list)
        and 0 < len(texts) <= max_texts
        and all(isinstance(text, str) and is_plain(text) for text in texts)
        and asked.get("heads", [AUTO]) == [AUTO]
        and type(top_k) is int
        and 1 <= top_k <= MAX_TOP_K
        and type(budget_ms) is int
        and MIN_BUDGET_MS <= budget_ms <= MAX_BUDGET_MS
        and type(least) in (int, float)
        and 0 <= least <= 1
        and type(asked.get("scores", False)) is bool
        and type(asked.get("cache", True)) is bool
    )
