"""OpenTelemetry's spans, made of log lines, by the standard library alone: a zip function reads lines, too.

A server and the emulator send spans while they run (`sending`); on Lambda a function reads the log and posts
them (`otlp_json`). Names of attributes, read 2026-11-24:
https://opentelemetry.io/docs/specs/semconv/http/http-spans/,
https://opentelemetry.io/docs/specs/semconv/faas/faas-spans/ and
https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import IntEnum
from typing import Any, NamedTuple

_MARK = '"spans_ms":'
_TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}", re.ASCII)
_SPAN_ID = re.compile(r"(?!0{16})[0-9a-f]{16}", re.ASCII)
_LATEST_NS = 2**63
_BROKEN = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


class Kind(IntEnum):
    """Kinds of spans that occur here, with OTLP's numbers."""

    INTERNAL = 1
    SERVER = 2
    CONSUMER = 5


class BrokenLine(ValueError):
    """A log line that should hold spans, and cannot be read. The message holds nothing of the line."""


class Span(NamedTuple):
    """A piece of work. Ids are lower-case hex, times are nanoseconds since 1970.

    parent_id: "" where the trace starts here.
    """

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: Kind
    start_ns: int
    end_ns: int
    attributes: Mapping[str, str | int | bool]
    is_error: bool = False


def spans_of(line: str) -> list[Span]:
    """The spans of a log line: one for the request or the messages, then one for each block of a stage.

    Empty for a line without spans. Equal lines give equal spans, so a line that is sent twice counts once.
    Raises BrokenLine.
    """
    if _MARK not in line:
        return []
    try:
        return list(_spans(json.loads(line)))
    except _BROKEN as exc:
        raise BrokenLine(f"The log line cannot be read: {type(exc).__name__}. Leave it out.") from exc


def _spans(fields: Mapping[str, Any]) -> Iterator[Span]:
    trace_id, span_id = _checked(fields["trace_id"], _TRACE_ID), _checked(fields["span_id"], _SPAN_ID)
    parent_id = _checked(fields["parent_span_id"], _SPAN_ID) if "parent_span_id" in fields else ""
    end_ns = round(datetime.fromisoformat(fields["time"]).timestamp() * 1e6) * 1000
    # The duration comes from a clock that never jumps.
    start_ns = end_ns - round(fields["duration_ms"] * 1e6)
    if not 0 <= start_ns <= end_ns < _LATEST_NS:
        raise ValueError
    of_kind = _request if "method" in fields else _messages
    name, kind, attributes = of_kind(fields)
    is_error = fields.get("status", 0) >= 500
    yield Span(name, trace_id, span_id, parent_id, kind, start_ns, end_ns, attributes, is_error)
    for number, (stage, begin_ms, duration_ms) in enumerate(fields["spans_ms"]):
        begin_ns = start_ns + round(begin_ms * 1e6)
        stage_end_ns = begin_ns + round(duration_ms * 1e6)
        if not 0 <= begin_ns <= stage_end_ns < _LATEST_NS:
            raise ValueError
        stage_id = _stage_id(span_id, number)
        yield Span(str(stage), trace_id, stage_id, span_id, Kind.INTERNAL, begin_ns, stage_end_ns, {})


def _checked(value: str, form: re.Pattern[str]) -> str:
    """The value. Raises ValueError if it has another form."""
    if form.fullmatch(value) is None:
        raise ValueError
    return value


def _stage_id(span_id: str, number: int) -> str:
    return hashlib.blake2b(f"{span_id} {number}".encode(), digest_size=8).hexdigest()


def _request(fields: Mapping[str, Any]) -> tuple[str, Kind, dict[str, str | int | bool]]:
    """Name, kind and attributes of a request's span."""
    method, path = str(fields["method"]), str(fields["path"])
    attributes: dict[str, str | int | bool] = {
        "http.request.method": method,
        "http.route": path,
        "http.response.status_code": int(fields["status"]),
        "faas.coldstart": fields["start"] == "cold",
        "faas.invocation_id": str(fields["request_id"]),
        "faas.trigger": "http",
    }
    model = {f"coldframe.{name}": str(fields[name]) for name in ("model", "version") if fields.get(name)}
    return f"{method} {path}", Kind.SERVER, attributes | model


def _messages(fields: Mapping[str, Any]) -> tuple[str, Kind, dict[str, str | int | bool]]:
    """Name, kind and attributes of a span for messages of one job."""
    attributes: dict[str, str | int | bool] = {
        "messaging.system": "aws_sqs",
        "messaging.operation.type": "process",
        "messaging.batch.message_count": int(fields["messages"]),
        "faas.trigger": "pubsub",
        "coldframe.job": str(fields["job"]),
    }
    return f"process {fields['event']}", Kind.CONSUMER, attributes
