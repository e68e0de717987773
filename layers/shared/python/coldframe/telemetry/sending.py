"""Spans of log lines on their way to a collector, from a thread, by OpenTelemetry's own library."""

import logging
import threading
from collections.abc import Sequence
from typing import Any, cast

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from coldframe import __version__
from coldframe.telemetry.spans import BrokenLine, Kind, Span, spans_of

_SCOPE = InstrumentationScope("coldframe", __version__)
_KINDS = {
    Kind.INTERNAL: SpanKind.INTERNAL,
    Kind.SERVER: SpanKind.SERVER,
    Kind.CONSUMER: SpanKind.CONSUMER,
}


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
        try:
            spans = spans_of(line)
        except BrokenLine:
            return
        for span in spans:
            self._processor.on_end(_readable(span, self._resource))

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


def _readable(span: Span, resource: Resource) -> ReadableSpan:
    """A span in the form of OpenTelemetry's library."""
    return ReadableSpan(
        span.name,
        _context(span.trace_id, span.span_id),
        _context(span.trace_id, span.parent_id) if span.parent_id else None,
        resource,
        dict(span.attributes),
        kind=_KINDS[span.kind],
        status=Status(StatusCode.ERROR if span.is_error else StatusCode.UNSET),
        start_time=span.start_ns,
        end_time=span.end_ns,
        instrumentation_scope=_SCOPE,
    )


def _context(trace_id: str, span_id: str) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), False, TraceFlags(TraceFlags.SAMPLED))
