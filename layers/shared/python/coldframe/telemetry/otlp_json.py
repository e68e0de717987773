"""OTLP over HTTP in JSON: requests with spans, within CloudWatch's limits, and what an answer says.

https://opentelemetry.io/docs/specs/otlp/#otlphttp and the limits of
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-OTLPEndpoint.html, read 2026-11-22.
By the standard library alone: a zip function uses it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from coldframe import __version__
from coldframe.telemetry.spans import Span

_ERROR = 2


@dataclass(frozen=True)
class Limits:
    """Limits of one request. Ages are those of a span's end, at the time of sending.

    gap_s: between the ends of two spans of a request.
    """

    request_bytes: int = 5_000_000
    request_spans: int = 10_000
    span_bytes: int = 200_000
    past_s: float = 14 * 86_400.0
    future_s: float = 2 * 3_600.0
    gap_s: float = 24 * 3_600.0


CLOUDWATCH = Limits()


class EncodedSpan(NamedTuple):
    """A span in OTLP's JSON, and its end in nanoseconds since 1970."""

    content: bytes
    end_ns: int


@dataclass(frozen=True)
class Batch:
    """The body of one request, and its number of spans."""

    body: bytes
    spans: int


def is_in_time(span: Span, now_s: float, limits: Limits = CLOUDWATCH) -> bool:
    """Whether a span is neither too old nor too far in the future. now_s: seconds since 1970."""
    return now_s - limits.past_s <= span.end_ns / 1e9 <= now_s + limits.future_s


def encode_span(span: Span) -> EncodedSpan:
    """A span in OTLP's JSON: ids are hex, 64-bit numbers are strings."""
    fields: dict[str, Any] = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "name": span.name,
        "kind": int(span.kind),
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _attributes(span.attributes),
    }
    if span.parent_id:
        fields["parentSpanId"] = span.parent_id
    if span.is_error:
        fields["status"] = {"code": _ERROR}
    return EncodedSpan(_encode(fields), span.end_ns)


def batches(
    spans: Iterable[EncodedSpan], resource: Mapping[str, str | int | bool], limits: Limits = CLOUDWATCH
) -> Iterator[Batch]:
    """Spans in as few requests as the limits allow, in their order.

    resource: attributes of the process that made the spans. Each span is smaller than a request.
    """
    head, tail = _envelope(resource)
    most_bytes = limits.request_bytes - len(head) - len(tail)
    for part in _parts(spans, most_bytes, limits):
        yield Batch(head + b",".join(part) + tail, len(part))


def _parts(spans: Iterable[EncodedSpan], most_bytes: int, limits: Limits) -> Iterator[list[bytes]]:
    """Contents of spans, as many as fit into a request each time."""
    part: list[bytes] = []
    size = first_ns = 0
    for content, end_ns in spans:
        is_far = abs(end_ns - first_ns) > limits.gap_s * 1e9 / 2
        if part and (is_far or size + len(content) + 1 > most_bytes or len(part) >= limits.request_spans):
            yield part
            part, size = [], 0
        first_ns = first_ns if part else end_ns
        part.append(content)
        size += len(content) + 1
    if part:
        yield part


def rejected_spans(answer: bytes) -> int:
    """Number of spans that a partial success names; 0 for an answer that names none or cannot be read."""
    try:
        return max(0, int(json.loads(answer)["partialSuccess"]["rejectedSpans"]))
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return 0


def _envelope(resource: Mapping[str, str | int | bool]) -> tuple[bytes, bytes]:
    """The parts of a request before and after its spans."""
    request = {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(resource)},
                "scopeSpans": [{"scope": {"name": "coldframe", "version": __version__}, "spans": []}],
            }
        ]
    }
    head, _, tail = _encode(request).rpartition(b"[]")
    return head + b"[", b"]" + tail


def _attributes(values: Mapping[str, str | int | bool]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: str | int | bool) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
    return {"stringValue": value}


def _encode(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
