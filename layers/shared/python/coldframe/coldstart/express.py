"""The express lane: a cold environment's first answers, before the rest of it is loaded.

What a plain request asks of the estimator needs no more than the standard library. A request
that is anything but plain, or holds a text that the estimator is not sure of, is left to `Api`,
whose answer would be the same: `tests/unit/coldframe/coldstart/test_express.py` compares them.
"""

import binascii
import json
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from coldframe.errors import BundleCorrupt
from coldframe.model.estimator import Estimator
from coldframe.model.files import AUTO, MANIFEST, REBUILD, read_file
from coldframe.model.vocabulary import load_vocabulary
from coldframe.model.wordpiece import PlainWordpiece, is_plain
from coldframe.text import normalise
from coldframe.vectors import ranked, to_floats, to_vector

if TYPE_CHECKING:
    from coldframe.model.bundle import EstimatorFacts

Json = Mapping[str, Any]

_MAX_BODY = 20_000  # characters
_MAX_TEXTS = 64
_FIELDS = frozenset({"text", "texts", "heads", "top_k", "scores", "cache", "budget_ms"})
_JSON_TYPES = ("application/json", "")

# With these set, and no other one, the lane knows all there is to know of the settings.
_KNOWN_SETTINGS = frozenset(
    f"COLDFRAME_{name}"
    for name in ("MODEL_DIR", "CACHE_TABLE", "CACHE_BUCKET", "CACHE_POLICY", "LOG_LEVEL", "DATA")
)


class ExpressLane:
    """Answers requests of which it is sure, in an environment that has loaded nothing else."""

    def __init__(self, model_dir: Path, has_table: bool, has_log: bool) -> None:
        """Raises BundleMissing or BundleCorrupt when what it needs cannot be used."""
        try:
            manifest = json.loads(read_file(model_dir, MANIFEST))
            encoder, facts = manifest["encoder"], manifest["estimator"]
            self._name, self._version, self._labels = (manifest[key] for key in ("name", "version", "labels"))
            self._max_tokens = (encoder["max_tokens"] - 2) * encoder["max_windows"]
            self._estimator = Estimator(model_dir, cast("EstimatorFacts", SimpleNamespace(**facts)))
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise BundleCorrupt(f"{MANIFEST} cannot be read: {exc}. {REBUILD}") from exc
        self._wordpiece = PlainWordpiece(load_vocabulary(model_dir).get)
        self._has_table = has_table
        self._has_log = has_log
        self.answered = 0

    def answer(self, event: Json, request_id: str) -> dict[str, Any] | None:
        """The function's result for an API Gateway event; None for one that is left to `Api`."""
        started_s = time.perf_counter()
        asked = _read(event)
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
        self.answered += 1
        total_ms = (time.perf_counter() - started_s) * 1e3
        if self._has_log:
            self._log(reply, request_id, total_ms)
        timing = f"estimate;dur={total_ms:.2f}, total;dur={total_ms:.2f}"
        headers = {"content-type": "application/json", "server-timing": timing}
        body = json.dumps(reply, separators=(",", ":"))
        return {"statusCode": 200, "headers": headers, "body": body, "isBase64Encoded": False}

    def _answer(self, text: str, asked: Json) -> dict[str, Any] | None:
        ids = self._wordpiece.ids(text)[: self._max_tokens]
        guess = self._estimator.predict(ids)
        if not self._estimator.is_sure(guess, ids):
            return None
        values = to_floats(to_vector(guess))
        best = ranked(values)[: asked.get("top_k", 1)]
        top = [{"label": self._labels[i], "probability": values[i]} for i in best]
        answer = {**top[0], "top": top, "by": "estimator"}
        if asked.get("scores"):
            answer["scores"] = dict(zip(self._labels, values, strict=True))
        return answer

    def _usage(self, texts: int, unique: int) -> dict[str, Any]:
        """Nothing was looked up: asking the table would take longer, the environment's own is empty."""
        cache = {"l1": 0, "l2": 0, "embedding": 0, "miss": unique}
        if self._has_table:
            cache["skipped"] = unique
        nothing = dict.fromkeys(("tokens", "padded_tokens", "windows", "batches"), 0)
        return {"texts": texts, "unique": unique, "estimated": unique, **nothing, "cache": cache}

    def _log(self, reply: Json, request_id: str, total_ms: float) -> None:
        line = {
            "event": "request",
            "request_id": request_id,
            "method": "POST",
            "path": "/v1/predict",
            "status": 200,
            "start": reply["start"],
            "version": self._version,
            "usage": reply["usage"],
            "stages_ms": {"estimate": round(total_ms, 3)},
            "total_ms": round(total_ms, 3),
        }
        print(json.dumps(line, separators=(",", ":")))


def open_lane(environ: Mapping[str, str]) -> ExpressLane | None:
    """The express lane of an on-demand environment; None where everything is loaded at once.

    That is so ahead of traffic, and with settings that only `load_settings` understands.
    Raises BundleMissing or BundleCorrupt.
    """
    given = {name: value for name, value in environ.items() if name.startswith("COLDFRAME_") and value}
    log_level = given.get("COLDFRAME_LOG_LEVEL", "info")
    policy = given.get("COLDFRAME_CACHE_POLICY", "adaptive")
    if (
        environ.get("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand") != "on-demand"
        or not given.keys() <= _KNOWN_SETTINGS
        or log_level not in ("info", "off")
        or policy not in ("adaptive", "off")
    ):
        return None
    folder = Path(given.get("COLDFRAME_MODEL_DIR", "/opt/model"))
    has_table = "COLDFRAME_CACHE_TABLE" in given and policy != "off"
    return ExpressLane(folder, has_table, has_log=log_level == "info")


def _read(event: Json) -> dict[str, Any] | None:
    """What a plain request asks; None for any other."""
    body = _body(event)
    if body is None:
        return None
    try:
        asked = json.loads(body)
    except ValueError:
        return None
    return asked if isinstance(asked, dict) and _is_plain_request(asked) else None


def _body(event: Json) -> str | None:
    """The JSON of a `POST /v1/predict`, as far as it is short and ASCII."""
    http = (event.get("requestContext") or {}).get("http") or {}
    method = http.get("method") or event.get("httpMethod")
    path = event.get("rawPath") or event.get("path")
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if (method, path) != ("POST", "/v1/predict"):
        return None
    if media_type not in _JSON_TYPES or "content-encoding" in headers:
        return None
    body = event.get("body") or ""
    if len(body) > _MAX_BODY:
        return None
    if event.get("isBase64Encoded"):
        try:
            return binascii.a2b_base64(body).decode("ascii")
        except ValueError:
            return None
    return body if body.isascii() else None


def _is_plain_request(asked: Json) -> bool:
    """Valid beyond doubt, for the head `auto` alone, with texts that the lane can read."""
    texts = asked["texts"] if "texts" in asked else [asked.get("text")]
    top_k, budget_ms = asked.get("top_k", 1), asked.get("budget_ms", 1)
    return (
        asked.keys() <= _FIELDS
        and ("text" in asked) != ("texts" in asked)
        and isinstance(texts, list)
        and 0 < len(texts) <= _MAX_TEXTS
        and all(isinstance(text, str) and is_plain(text) for text in texts)
        and asked.get("heads", [AUTO]) == [AUTO]
        and type(top_k) is int
        and 1 <= top_k <= 20
        and type(budget_ms) is int
        and budget_ms >= 1
        and type(asked.get("scores", False)) is bool
        and type(asked.get("cache", True)) is bool
    )
