"""Requests and replies as the doors carry them, and how a body is read and written."""

import math
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct, field

from coldframe.api.contract import ENVELOPE_BYTES, JSON, READ_AS_JSON, content_encoding, media_type
from coldframe.api.schemas import Problem, Start
from coldframe.cache.cache import Unsaved
from coldframe.config import Settings
from coldframe.errors import AnswerTooLarge, Malformed, RequestError, TooLarge, UnsupportedMediaType
from coldframe.timing import Deadline

if TYPE_CHECKING:
    from coldframe.pipeline.answers import Answered
    from coldframe.serving.caller import Caller

BINARY = "application/octet-stream"

SEND_FEWER = "Send fewer texts."

_KEPT_FOR_THE_REPLY_S = 0.25

T = TypeVar("T")


class Request(Struct, frozen=True):
    """What a door has read from its event. Header names are lower case, the path is decoded.

    start, params: filled in by `Api`, the second with what the route's pattern matched.
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
    """When it came in, by `time.monotonic`; None: now. What it waited since counts against its budget."""
    caller: "Caller | None" = None
    """Who waits, where the door can tell when they hang up."""
    principal: str = ""
    """Name of the caller, as the authorizer before this door gives it; "" for a caller without a name."""
    is_decompressed: bool = False
    """Whether the door has decompressed the body, and has found it within its limits."""
    is_probe: bool = False
    """Whether a platform asks over and over how this place is: an answer of 200 is not logged."""


class Reply(Struct, frozen=True):
    """What a door writes."""

    status: int
    body: bytes
    headers: dict[str, str]
    log: dict[str, object] = field(default_factory=dict)
    """Counts and times for the log line; never a text."""
    too_large_hint: str = SEND_FEWER
    """What to ask for when this answer is too large."""
    unsaved: Unsaved = field(default_factory=dict)
    """What the shared cache is to have, once this reply is built."""

    @property
    def is_binary(self) -> bool:
        """Whether the body is no text, so that an event carries it in base64."""
        return self.headers.get("content-type") == BINARY

    def carried_bytes(self) -> int:
        """What the body takes inside a function's result, which is JSON: at most this.

        Quotes and backslashes take two bytes there. Beyond ASCII, a character of 2, 3
        or 4 bytes takes 6, 6 or 12: the runtime client escapes it.
        """
        if self.is_binary:
            return -(-len(self.body) // 3) * 4
        escapes = self.body.count(b'"') + self.body.count(b"\\")
        if not self.body.isascii():
            escapes += 2 * (len(self.body) - len(self.body.decode().encode("ascii", "ignore")))
        return len(self.body) + escapes


def check_size(reply: Reply, limit_bytes: int) -> None:
    """Raises AnswerTooLarge, with the reply's hint, for one that a function's result cannot carry."""
    found = reply.carried_bytes() + ENVELOPE_BYTES
    if found > limit_bytes:
        raise AnswerTooLarge(
            f"The answer would have {found} bytes on its way out, expected at most {limit_bytes}."
            f" {reply.too_large_hint}"
        )


def read_body(request: Request, settings: Settings, also: frozenset[str] = frozenset()) -> bytes:
    """The body, decompressed. Raises the request error that says why it cannot be read.

    also: media types that this route reads beside those read as JSON.
    """
    if media_type(request.headers) not in READ_AS_JSON | also:
        expected = " or ".join([JSON, *sorted(also)])
        raise UnsupportedMediaType(f"The body is not declared as JSON. Send Content-Type: {expected}.")
    encoding = content_encoding(request.headers)
    if encoding not in ("", "identity", "gzip"):
        raise UnsupportedMediaType(
            "The body has a Content-Encoding that is not read here. Send it with gzip, or as it is."
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
    """JSON as what `decoder` makes of it. Raises the request error that says what is wrong with it.

    decoder: made once, when its module is imported. Two threads that each have msgspec see a type for the
    first time may crash the process.
    example: what a body looks like, for someone who sent none.
    """
    if not body.strip():
        raise Malformed(f"The body is empty. Expected JSON, for instance {example}.")
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        from coldframe.api.refused_json import read_again

        return read_again(body, decoder, exc)


def deadline_of(request: Request, budget_s: float = math.inf) -> Deadline:
    """When the work on a request has to be over: what its caller allows, or the platform if that is less."""
    limit_s = min(budget_s, request.time_left_s() - _KEPT_FOR_THE_REPLY_S)
    return Deadline(limit_s, caller=request.caller)


def json_reply(
    value: object,
    headers: Mapping[str, str] | None = None,
    log: dict[str, object] | None = None,
    too_large_hint: str = SEND_FEWER,
    unsaved: Unsaved | None = None,
) -> Reply:
    """A 200 that holds `value` as JSON."""
    named = {"content-type": JSON, **(headers or {})}
    return Reply(HTTPStatus.OK, msgspec.json.encode(value), named, log or {}, too_large_hint, unsaved or {})


def work_log(answered: "Answered") -> dict[str, object]:
    """What the log line of a request says of the work: counts, times, and what failed."""
    failed = {"cache_error": answered.cache_error} if answered.cache_error else {}
    return {"usage": answered.usage, **answered.times.rounded(), **failed}


def problem_reply(error: RequestError, path: str, cause: Exception | None = None) -> Reply:
    """An error as problem+json. cause: what the log names when the error itself says too little."""
    name = type(error).__name__
    problem = Problem(f"urn:coldframe:error:{name}", error.title, int(error.status), str(error))
    if path.startswith("/v2"):
        problem.error = problem.detail  # where the Open Inference Protocol has it
    if path.startswith("/v1/sql/bigquery"):
        problem.error_message = problem.detail[:1000]  # what BigQuery shows, of less than 1 KB
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
