"""OpenTelemetry's spans, made of requests' log lines, and sent to a collector.

A server and the emulator send while they run; on Lambda a forwarder reads the log. Names of attributes:
https://opentelemetry.io/docs/specs/semconv/http/http-spans/ and
https://opentelemetry.io/docs/specs/semconv/faas/faas-spans/, read 2026-11-24.
"""

import hashlib
import logging
import threading
from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

import msgspec
from msgspec import Struct
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from coldframe import __version__

_SCOPE = InstrumentationScope("coldframe", __version__)
_MARK = '"spans_ms":'


class RequestLine(Struct):
    """Fields of a request's log line that its spans are made of."""

    time: datetime
    request_id: str
    method: str
    path: str
    status: int
    start: str
    duration_ms: float
    trace_id: str
    span_id: str
    spans_ms: list[tuple[str, float, float]]
    parent_span_id: str = ""
    model: str = ""
    version: str = ""


_DECODER = msgspec.json.Decoder(RequestLine)


def spans_of(line: str, resource: Resource) -> list[ReadableSpan]:
    """The spans of a request's log line: one for the request, then one for each block of a stage.

    Empty for any other line. Equal lines give equal spans, so a line that is sent twice counts once.
    """
    if _MARK not in line:
        return []
    try:
        request = _DECODER.decode(line)
        context = _context(request.trace_id, request.span_id)
        parent = _context(request.trace_id, request.parent_span_id) if request.parent_span_id else None
    except (msgspec.MsgspecError, UnicodeError, ValueError):
        return []
    end_ns = round(request.time.timestamp() * 1e6) * 1000
    start_ns = end_ns - round(request.duration_ms * 1e6)
    spans = [
        ReadableSpan(
            f"{request.method} {request.path}",
            context,
            parent,
            resource,
            _attributes(request),
            kind=SpanKind.SERVER,
            status=Status(StatusCode.ERROR if request.status >= 500 else StatusCode.UNSET),
            start_time=start_ns,
            end_time=end_ns,
            instrumentation_scope=_SCOPE,
        )
    ]
    for number, (stage, begin_ms, duration_ms) in enumerate(request.spans_ms):
        begin_ns = start_ns + round(begin_ms * 1e6)
        spans.append(
            ReadableSpan(
                stage,
                _context(request.trace_id, _stage_id(request.span_id, number)),
                context,
                resource,
                start_time=begin_ns,
                end_time=begin_ns + round(duration_ms * 1e6),
                instrumentation_scope=_SCOPE,
            )
        )
    return spans


class SpanSender:
    """Sends the spans of log lines to a collector, from a thread of its own. Safe for threads.

    A collector that is slow, refuses or is down delays nobody: spans that do not fit in the queue are
    dropped.
    """

    def __init__(self, exporter: SpanExporter, service: str) -> None:
        self._exporter = _CountingExporter(exporter)
        self._processor = BatchSpanProcessor(self._exporter)
        self._resource = Resource.create({"service.name": service})

    @property
    def lost(self) -> int:
        """Spans that the collector did not take."""
        return self._exporter.lost

    def __call__(self, line: str) -> None:
        """Queues the spans of one line of a log, if it has any."""
        for span in spans_of(line, self._resource):
            self._processor.on_end(span)

    def close(self, patience_s: float = 2.0) -> None:
        """Sends the queued spans, for `patience_s` at most."""
        closing = threading.Thread(target=self._processor.shutdown, name="spans", daemon=True)
        closing.start()
        closing.join(patience_s)
        self._exporter.shutdown()


def open_sender(service: str, endpoint: str) -> SpanSender:
    """A sender to a collector. OpenTelemetry's `OTEL_EXPORTER_OTLP_*` variables set headers and time limits.

    service: value of `service.name`. endpoint: the collector's address; `/v1/traces` is appended.
    """
    # A collector that is down would get a line of the log for each batch. `SpanSender.lost` counts.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    return SpanSender(OTLPSpanExporter(endpoint.rstrip("/") + "/v1/traces"), service)


class _CountingExporter(SpanExporter):
    """An exporter that counts the spans which its collector did not take."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self.lost = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        if result is not SpanExportResult.SUCCESS:
            self.lost += len(spans)
        return result

    def shutdown(self) -> None:
        cast(Any, self._exporter).shutdown()  # without types

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def _context(trace_id: str, span_id: str) -> SpanContext:
    """Raises ValueError for ids that are not hex."""
    return SpanContext(int(trace_id, 16), int(span_id, 16), False, TraceFlags(TraceFlags.SAMPLED))


def _stage_id(span_id: str, number: int) -> str:
    return hashlib.blake2b(f"{span_id} {number}".encode(), digest_size=8).hexdigest()


def _attributes(request: RequestLine) -> dict[str, str | int | bool]:
    attributes: dict[str, str | int | bool] = {
        "http.request.method": request.method,
        "http.route": request.path,
        "http.response.status_code": request.status,
        "faas.coldstart": request.start == "cold",
        "faas.invocation_id": request.request_id,
        "faas.trigger": "http",
    }
    model = {"coldframe.model": request.model, "coldframe.version": request.version}
    return attributes | {name: value for name, value in model.items() if value}
