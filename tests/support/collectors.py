"""A collector of OpenTelemetry's spans over HTTP, which refuses, delays and half-accepts as real ones do."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """Spans in the order of their arrival, and the statuses that answer the next requests."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self.paths: list[str] = []
        self.statuses: list[int] = []
        self.rejected_spans = 0
        self._arrival = threading.Condition()

    def take(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of an answer. Raises DecodeError for a body that is not OTLP."""
        request = ExportTraceServiceRequest.FromString(body)
        with self._arrival:
            self.paths.append(path)
            status = self.statuses.pop(0) if self.statuses else 200
            if status == 200:
                for resource in request.resource_spans:
                    facts = {fact.key: fact.value.string_value for fact in resource.resource.attributes}
                    self.services.add(facts["service.name"])
                    for scope in resource.scope_spans:
                        self.spans.extend(scope.spans)
            self._arrival.notify_all()
        partial = ExportTracePartialSuccess(rejected_spans=self.rejected_spans)
        return status, ExportTraceServiceResponse(partial_success=partial).SerializeToString()

    def wait_for(self, is_complete: Callable[[], bool], limit_s: float = 60.0) -> bool:
        """Whether the condition held at the arrival of a request within the limit."""
        with self._arrival:
            return self._arrival.wait_for(is_complete, limit_s)


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on a free port of this machine."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            status, answer = collector.take(self.path, body)
            self.send_response(status)
            if status == 429:
                self.send_header("retry-after", "0")
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
