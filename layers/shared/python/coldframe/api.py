"""Routes and statuses without a framework: a request in, a reply out."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from coldframe.config import Settings
from coldframe.errors import (
    Invalid,
    Malformed,
    MethodNotAllowed,
    NotFound,
    RequestError,
    TooLarge,
    UnsupportedMediaType,
)
from coldframe.predictor import Prediction, Predictor
from coldframe.schemas import (
    HeadAnswer,
    HeadCard,
    Health,
    ModelCard,
    ModelList,
    PredictReply,
    PredictRequest,
    Problem,
    Score,
    Start,
    TextAnswer,
)
from coldframe.timing import StageTimes, StartMark, log_line

# curl sends the second one unless told otherwise, and browsers' forms the third.
_READ_AS_JSON = {"", "application/json", "application/x-www-form-urlencoded", "text/plain"}
_ECHOED_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """What a door has read from its event. Header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    request_id: str = ""
    time_left_s: Callable[[], float] = lambda: math.inf
    """Seconds until the platform stops this invocation."""


@dataclass(frozen=True)
class Reply:
    """What a door writes."""

    status: int
    body: bytes
    headers: dict[str, str]
    log: dict[str, object] = field(default_factory=dict)
    """Counts and times for the log line; never a text."""


class Api:
    """Answers the routes of the contract for one environment."""

    def __init__(
        self,
        predictor: Predictor,
        settings: Settings,
        start: StartMark,
        log: Callable[[str], None] = print,
    ) -> None:
        self._predictor = predictor
        self._settings = settings
        self._start = start
        self._log = log
        self._created_s = int(time.time())
        self.routes: dict[tuple[str, str], Callable[[Request, Start], Reply]] = {
            ("POST", "/v1/predict"): self._predict,
            ("GET", "/v1/models"): self._models,
            ("GET", "/healthz"): self._health,
        }

    def answers(self, method: str, path: str) -> bool:
        """Whether `answer` knows this route; if not, FastAPI may."""
        return (method, path) in self.routes

    def answer(self, request: Request) -> Reply:
        """The reply to any request. Never raises: what goes wrong is a problem+json reply."""
        start = self._start.take()
        try:
            reply = self._route(request)(request, start)
        except RequestError as exc:
            reply = _problem(exc)
        except Exception as exc:  # a defect of ours: no detail may reach the caller or the log
            reply = _problem(RequestError("Something went wrong here; the request may be tried again."), exc)
        reply.log.update(self._save(request))
        if self._settings.log_level != "off":
            self._log(self._line(request, reply, start))
        return reply

    def _save(self, request: Request) -> dict[str, object]:
        """Writes to the shared cache, now that the answer is built; what of it goes into the log."""
        times = StageTimes()
        saved = self._predictor.cache.save(request.time_left_s)
        if saved is None:
            return {}
        costs = {"values": saved.values, "of": saved.of, "ms": round(times.total_ms(), 3)}
        return {"cache_write": costs | ({"error": saved.failure} if saved.failure else {})}

    def _route(self, request: Request) -> Callable[[Request, Start], Reply]:
        if route := self.routes.get((request.method, request.path)):
            return route
        allowed = ", ".join(sorted(method for method, path in self.routes if path == request.path))
        if allowed:
            raise MethodNotAllowed(f"This route takes {allowed}.", {"allow": allowed})
        known = ", ".join(f"{method} {path}" for method, path in self.routes)
        raise NotFound(f"There is no such route. Routes: {known}; and GET /docs.")

    def _predict(self, request: Request, start: Start) -> Reply:
        asked = read_json(request, PredictRequest, self._settings.max_body_bytes)
        texts = self._texts(asked)
        heads = list(dict.fromkeys(asked.heads or [self._predictor.manifest.default_head]))
        self._check_heads(heads)
        prediction = self._predictor.predict(texts, heads, asked.cache)
        reply = PredictReply(
            model=self._predictor.manifest.name,
            version=self._predictor.manifest.version,
            start=start,
            predictions=self._answers(prediction, asked),
            usage=prediction.usage,
        )
        timing = {"server-timing": prediction.times.server_timing()}
        return _json(reply, timing, log=_costs(prediction))

    def _texts(self, asked: PredictRequest) -> list[str]:
        if isinstance(asked.text, str) == isinstance(asked.texts, list):
            raise Invalid('Expected either "text" (a string) or "texts" (a list of strings).')
        texts = [asked.text] if isinstance(asked.text, str) else list(asked.texts or [])
        if len(texts) > self._settings.max_texts:
            limit = self._settings.max_texts
            raise TooLarge(f"Found {len(texts)} texts, expected at most {limit}. Send them in parts.")
        return texts

    def _check_heads(self, heads: list[str]) -> None:
        known = self._predictor.manifest.heads
        for head in heads:
            if head not in known:
                raise Invalid(f"{_echo(head)} is not a head of this model. Heads: {', '.join(known)}.")

    def _answers(self, prediction: Prediction, asked: PredictRequest) -> list[TextAnswer]:
        labels = self._predictor.manifest.labels
        return [
            TextAnswer(
                index,
                {
                    head: _head_answer(rows[index], labels, asked)
                    for head, rows in prediction.probabilities.items()
                },
            )
            for index in range(prediction.usage.texts)
        ]

    def _models(self, request: Request, start: Start) -> Reply:
        manifest = self._predictor.manifest
        heads = {
            name: HeadCard(head.accuracy_stripped, head.accuracy_full)
            for name, head in manifest.heads.items()
        }
        card = ModelCard(
            id=manifest.name,
            object="model",
            created=self._created_s,
            owned_by="coldframe",
            version=self._predictor.manifest.version,
            labels=manifest.labels,
            default_head=manifest.default_head,
            heads=heads,
        )
        return _json(ModelList("list", [card]))

    def _health(self, request: Request, start: Start) -> Reply:
        return _json(Health("ok", self._predictor.manifest.version))

    def _line(self, request: Request, reply: Reply, start: Start) -> str:
        known = any(path == request.path for _, path in self.routes)
        return log_line(
            event="request",
            request_id=request.request_id,
            method=request.method,
            path=request.path if known else "other",  # an unknown path is the caller's text
            status=reply.status,
            start=start,
            version=self._predictor.manifest.version,
            **reply.log,
        )


def read_json(request: Request, kind: type[T], max_bytes: int) -> T:
    """The body as `kind`. Raises the request error that says what is wrong with it."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in _READ_AS_JSON:
        raise UnsupportedMediaType("The body is not declared as JSON. Send Content-Type: application/json.")
    if request.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        raise UnsupportedMediaType("The body is compressed. Send it as it is, without Content-Encoding.")
    if len(request.body) > max_bytes:
        raise TooLarge(
            f"The body has {len(request.body)} bytes, expected at most {max_bytes}. Send it in parts."
        )
    if not request.body.strip():
        raise Malformed('The body is empty. Expected JSON, for instance {"text": "…"}.')
    try:
        return msgspec.json.decode(request.body, type=kind)
    except msgspec.ValidationError as exc:
        raise Invalid(f"{exc}. The contract is at /docs.") from exc
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise Malformed(
            f"The body cannot be read as JSON: {exc}. Check quotes, commas and encoding."
        ) from exc


def _head_answer(row: NDArray[np.float32], labels: list[str], asked: PredictRequest) -> HeadAnswer:
    best = np.argsort(-row, kind="stable")[: asked.top_k]
    top = [Score(labels[i], float(row[i])) for i in best]
    answer = HeadAnswer(top[0].label, top[0].probability, top)
    if asked.scores:
        answer.scores = {label: float(value) for label, value in zip(labels, row, strict=True)}
    return answer


def _costs(prediction: Prediction) -> dict[str, object]:
    stages_ms = {name: round(ms, 3) for name, ms in prediction.times.stages_ms.items()}
    return {
        "usage": prediction.usage,
        "stages_ms": stages_ms,
        "total_ms": round(prediction.times.total_ms(), 3),
        **({"cache_error": prediction.cache_error} if prediction.cache_error else {}),
    }


def _json(
    value: object, headers: Mapping[str, str] | None = None, log: dict[str, object] | None = None
) -> Reply:
    return Reply(
        HTTPStatus.OK,
        msgspec.json.encode(value),
        {"content-type": "application/json", **(headers or {})},
        log or {},
    )


def _problem(error: RequestError, cause: Exception | None = None) -> Reply:
    name = type(error).__name__
    problem = Problem(f"urn:coldframe:error:{name}", error.title, int(error.status), str(error))
    return Reply(
        problem.status,
        msgspec.json.encode(problem),
        {"content-type": "application/problem+json", **error.headers},
        {"error": name if cause is None else f"{name}: {_where(cause)}"},
    )


def _where(exc: Exception) -> str:
    """Type and place of a defect; its message may hold a caller's text."""
    frame = exc.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    place = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame else "unknown"
    return f"{type(exc).__name__} at {place}"


def _echo(name: str) -> str:
    """A name as it was sent, if it looks like a name at all: it may be a misplaced text."""
    return f'"{name}"' if len(name) <= 32 and _ECHOED_CHARACTERS.issuperset(name) else "What was sent"
