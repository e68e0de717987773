"""The express lane: a cold environment's first answers, before the rest of it is loaded.

What a plain request asks of the estimator needs no more than the standard library. A request
that is anything but plain, or holds a text that the estimator is not sure of, is left to `Api`,
whose answer would be the same: `tests/unit/coldframe/coldstart/test_express.py` compares them.
"""

import binascii
import json
import time
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

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
    USAGE_COUNTS,
    log_record,
    log_times,
    media_type,
    server_timing,
)
from coldframe.api.gateway_event import read_http
from coldframe.coldstart.lane_settings import LaneSettings, closed_by, closed_line, has_log
from coldframe.errors import BundleCorrupt
from coldframe.model.estimator import Estimator
from coldframe.model.files import AUTO, MANIFEST, REBUILD, read_file
from coldframe.model.wordpiece import load_plain
from coldframe.text import normalise
from coldframe.vectors import ranked, to_floats, to_vector

if TYPE_CHECKING:
    from coldframe.model.bundle import EstimatorFacts

Json = Mapping[str, Any]

_MAX_BODY = 20_000  # characters
_MAX_TEXTS = 64
_FIELDS = frozenset(REQUEST_FIELDS)
_OF_TOKENIZER = ("tokenizer", "lower_case", "lower_texts")  # facts of the encoder


class ExpressLane:
    """Answers requests of which it is sure, in an environment that has loaded nothing else."""

    def __init__(self, settings: LaneSettings) -> None:
        """Raises BundleMissing or BundleCorrupt when what it needs cannot be used."""
        model_dir = settings.model_dir
        try:
            manifest = json.loads(read_file(model_dir, MANIFEST))
            encoder, facts = manifest["encoder"], manifest["estimator"]
            self._name, self._version, self._labels = (manifest[key] for key in ("name", "version", "labels"))
            taken = 2 + len(encoder.get("prefix_tokens", ()))  # by what is around a window's text
            self._max_tokens = (encoder["max_tokens"] - taken) * encoder["max_windows"]
            tokenizer = {fact: encoder[fact] for fact in _OF_TOKENIZER if fact in encoder}
            self._estimator = Estimator(model_dir, cast("EstimatorFacts", SimpleNamespace(**facts)))
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise BundleCorrupt(f"{MANIFEST} cannot be read: {exc}. {REBUILD}") from exc
        self._tokenizer = load_plain(model_dir, **tokenizer)
        self._settings = settings
        self._max_texts = min(_MAX_TEXTS, settings.max_texts)
        self._max_body = min(_MAX_BODY, settings.max_body_bytes)
        self.answered = 0

    def answer(self, event: Json, request_id: str) -> dict[str, Any] | None:
        """The function's result for an API Gateway event; None for one that is left to `Api`."""
        started_s = time.perf_counter()
        asked = self._read(event)
        if asked is None:
            return None
        texts = [normalise(text) for text in asked.get("texts") or [asked["text"]]]
        answers = {text: self._answer(text, asked) for text in dict.fromkeys(texts)}
        if None in answers.values():
            return None
        reply = {
            "model": self._name,
            "version": self._version,
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

    def _answer(self, text: str, asked: Json) -> dict[str, Any] | None:
        ids = self._tokenizer.ids(text, self._max_tokens)
        guess = self._estimator.predict(ids)
        if not self._estimator.is_sure(guess, ids):
            return None
        values = to_floats(to_vector(guess))
        best = ranked(values)[: asked.get("top_k", DEFAULT_TOP_K)]
        top = [{"label": self._labels[i], "probability": values[i]} for i in best]
        answer = {**top[0], "top": top, "by": "estimator"}
        if asked.get("scores"):
            answer["scores"] = dict(zip(self._labels, values, strict=True))
        return answer

    def _usage(self, texts: int, unique: int) -> dict[str, Any]:
        """Nothing was looked up: asking the table would take longer, the environment's own is empty."""
        cache = {**dict.fromkeys(CACHE_COUNTS, 0), "miss": unique}
        if self._settings.has_table:
            cache["skipped"] = unique
        counts = {"texts": texts, "unique": unique, "estimated": unique}
        return {**dict.fromkeys(USAGE_COUNTS, 0), **counts, "cache": cache}

    def _log(self, reply: Json, request_id: str, stages_ms: Mapping[str, float], total_ms: float) -> None:
        record = log_record(request_id, *PREDICT, 200, reply["start"], self._version)
        line = {**record, "usage": reply["usage"], **log_times(stages_ms, total_ms)}
        print(json.dumps(line, separators=(",", ":")))

    def _read(self, event: Json) -> dict[str, Any] | None:
        """What a plain request asks; None for any other."""
        body = self._body(event)
        if body is None:
            return None
        try:
            asked = json.loads(body, object_pairs_hook=_without_repeats, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return None
        if not isinstance(asked, dict):
            return None
        return asked if _is_plain_request(asked, self._max_texts, self._tokenizer.is_plain) else None

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
        and type(asked.get("scores", False)) is bool
        and type(asked.get("cache", True)) is bool
    )
