"""Requests and replies between entry points and routes, and how a body is read and written."""

import math
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct, field

from coldframe.cache.cache import Unsaved
from coldframe.config import Settings
from coldframe.contract import ENVELOPE_BYTES, JSON, READ_AS_JSON
from coldframe.errors import AnswerTooLarge, Malformed, RequestError, TooLarge, UnsupportedMediaType
from coldframe.schemas import Problem, Start, TextAnswer
from coldframe.timing import Deadline

if TYPE_CHECKING:
    from coldframe.pipeline.answers import Answered
    from coldframe.scheduling.caller import Caller
    from coldframe.telemetry.trace import Trace

BINARY = "application/octet-stream"

SEND_FEWER = "Send fewer texts."

_KEPT_FOR_THE_REPLY_S = 0.25

T = TypeVar("T")


class Request(Struct, frozen=True):
    """A request as an entry point has read it. Header names are lower case, the path is decoded.

    start: beginning of the work. params: values of the names in the route's pattern. `Api` sets both.
    """

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    request_id: str = ""
    start: Start = "warm"
    params: Mapping[str, str] = field(default_factory=dict)
    time_left_s: Callable[[], float] = lambda: math.inf
    """Seconds until the platform stops this invocation."""
    arrived_s: float | None = None
    """Moment of arrival, by `time.monotonic`; None: now. The wait since then counts against the request's
    budget.
    """
    caller: "Caller | None" = None
    """The waiting caller, where the entry point can tell when it disconnects."""
    principal: str = ""
    """The caller's name from the authorizer in front; "" for a caller without a name."""
    is_decompressed: bool = False
    """Whether the entry point has decompressed the body and checked its limits."""
    is_probe: bool = False
    """Whether a platform sends a health check: an answer of 200 is not logged."""
    has_ids: bool = True
    """Whether answers have ids for feedback, where the deployment has feedback."""
    platform_trace: str = ""
    """X-Ray's header as the platform hands it to an invocation; "" outside Lambda."""
    trace: "Trace | None" = None
    """Place in a distributed trace. `Api` sets it where `COLDFRAME_TRACES` is on."""


class Reply(Struct, frozen=True):
    """The answer that an entry point writes."""

    status: int
    body: bytes
    headers: dict[str, str]
    log: dict[str, object] = field(default_factory=dict)
    """Counts and times for the log line; never a text."""
    too_large_hint: str = SEND_FEWER
    """Advice for a caller whose answer is too large: what to request instead."""
    unsaved: Unsaved = field(default_factory=dict)
    """Entries to write to the shared cache after the reply is built."""

    @property
    def is_binary(self) -> bool:
        """Whether the body is binary, so that an event carries it in base64."""
        return self.headers.get("content-type") == BINARY

    def carried_bytes(self) -> int:
        """Most bytes of the body inside a function's result, which is JSON.

        Quotes and backslashes take two bytes. Beyond ASCII, a character of 2, 3 or 4 bytes takes 6, 6 or 12:
        the runtime client escapes it.
        """
        if self.is_binary:
            return -(-len(self.body) // 3) * 4
        escapes = self.body.count(b'"') + self.body.count(b"\\")
        if not self.body.isascii():
            escapes += 2 * (len(self.body) - len(self.body.decode().encode("ascii", "ignore")))
        return len(self.body) + escapes


def check_size(reply: Reply, limit_bytes: int) -> None:
    """Raises AnswerTooLarge, with the reply's hint, if a function's result cannot carry the reply."""
    size_bytes = reply.carried_bytes() + ENVELOPE_BYTES
    if size_bytes > limit_bytes:
        raise AnswerTooLarge(
            f"The answer would have {size_bytes} bytes on its way out, expected at most {limit_bytes}."
            f" {reply.too_large_hint}"
        )


def read_body(request: Request, settings: Settings, also: frozenset[str] = frozenset()) -> bytes:
    """The body, decompressed. Raises the request error that says why it cannot be read.

    also: media types that this route reads besides JSON's.
    """
    if media_type(request.headers) not in READ_AS_JSON | also:
        expected = " or ".join([JSON, *sorted(also)])
        raise UnsupportedMediaType(f"The body is not declared as JSON. Send Content-Type: {expected}.")
    encoding = content_encoding(request.headers)
    if encoding not in ("", "identity", "gzip"):
        raise UnsupportedMediaType(
            "The body has a Content-Encoding that is not supported. Send it with gzip, or without one."
        )
    if request.is_decompressed:
        return request.body
    if len(request.body) > settings.max_body_bytes:
        raise TooLarge(
            f"The body has {len(request.body)} bytes, expected at most {settings.max_body_bytes}."
            " Send it in parts."
        )
    if encoding == "gzip":
        from coldframe.api.compression import gunzip

        return gunzip(request.body, settings.max_decompressed_bytes)
    return request.body


def decode_json(body: bytes, decoder: msgspec.json.Decoder[T], example: str) -> T:
    """A JSON body decoded by `decoder`. Raises the request error that says what is wrong with the body.

    decoder: created when its module is imported. Two threads that create one for a type at once may crash the
    process.
    example: a valid body, for the message to a caller that sent an empty one.
    """
    if not body.strip():
        raise Malformed(f"The body is empty. Send JSON, for instance {example}.")
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        from coldframe.api.refused_json import read_again

        return read_again(body, decoder, exc)


def deadline_of(
    request: Request, budget_s: float = math.inf, may_rush: bool = False, is_budget: bool = False
) -> Deadline:
    """Moment by which the work on a request ends: the caller's limit or the platform's, if earlier.

    may_rush: the request accepts an answer by less work. is_budget: its caller states the time.
    """
    limit_s = min(budget_s, request.time_left_s() - _KEPT_FOR_THE_REPLY_S)
    return Deadline(limit_s, caller=request.caller, may_rush=may_rush, is_budget=is_budget)


def json_reply(
    value: object,
    headers: Mapping[str, str] | None = None,
    log: dict[str, object] | None = None,
    too_large_hint: str = SEND_FEWER,
    unsaved: Unsaved | None = None,
) -> Reply:
    """A reply with status 200 and `value` as JSON."""
    all_headers = {"content-type": JSON, **(headers or {})}
    return Reply(
        HTTPStatus.OK, msgspec.json.encode(value), all_headers, log or {}, too_large_hint, unsaved or {}
    )


def work_log(prediction: "Answered") -> dict[str, object]:
    """Fields of a request's log line about its work: counts, times and failures."""
    failed = {"cache_error": prediction.cache_error} if prediction.cache_error else {}
    return {"usage": prediction.usage, **prediction.times.log_fields(), **failed}


def count_answers(answers: Iterable[TextAnswer]) -> dict[str, int]:
    """Answers of heads by the part that gave them, and those abstained or rushed."""
    counts: dict[str, int] = {}
    for text in answers:
        for answer in text.heads.values():
            parts = (answer.by or "", "abstained" * answer.abstained, "rushed" * answer.rushed)
            for part in filter(None, parts):
                counts[part] = counts.get(part, 0) + 1
    return counts


def problem_reply(error: RequestError, path: str, cause: Exception | None = None) -> Reply:
    """An error as problem+json. cause: text for the log when the error itself says too little."""
    name = type(error).__name__
    problem = Problem(f"urn:coldframe:error:{name}", error.title, int(error.status), str(error))
    if path.startswith("/v2"):
        problem.error = problem.detail  # the Open Inference Protocol's field
    if path.startswith("/v1/sql/bigquery"):
        problem.error_message = problem.detail[:1000]  # BigQuery shows this field, if it has less than 1 KB
    return Reply(
        problem.status,
        msgspec.json.encode(problem),
        {"content-type": "application/problem+json", **error.headers},
        {"error": name if cause is None else f"{name}: {where(cause)}"},
    )


def where(exc: Exception) -> str:
    """Type and place of a defect, without its message, which may hold a caller's text."""
    frame = exc.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    place = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame else "unknown"
    return f"{type(exc).__name__} at {place}"


def media_type(headers: Mapping[str, str]) -> str:
    """Media type of the body, without parameters; empty if not declared. Header names are lower case."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def content_encoding(headers: Mapping[str, str]) -> str:
    """Content encoding of the body; empty if it has none. Header names are lower case."""
    return headers.get("content-encoding", "").strip().lower()


def log_record(
    request: Request, path: str, status: int, start: Start, duration_s: float
) -> dict[str, object]:
    """First fields of a request's log line. path: the route's pattern, never the caller's text."""
    return {
        "event": "request",
        "request_id": request.request_id,
        "method": request.method,
        "path": path,
        "status": status,
        "start": start,
        "duration_ms": round(duration_s * 1e3, 3),
    }
