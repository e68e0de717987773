"""A collector of OpenTelemetry's spans over HTTP, which refuses, delays and half-accepts as real ones do.

It reads both forms of OTLP by OpenTelemetry's own protobuf classes. Beside it, log lines with spans.
"""

from __future__ import annotations

import base64
import gzip
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from google.protobuf import json_format  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

REQUEST_FIELDS: dict[str, Any] = {
    "time": "2026-11-24T10:00:00.500000Z",
    "event": "request",
    "request_id": "r1",
    "method": "POST",
    "path": "/v1/predict",
    "status": 200,
    "start": "cold",
    "duration_ms": 12.5,
    "model": "topics",
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    "span_id": "00f067aa0ba902b7",
    "parent_span_id": "53995c3f42cd8ad8",
    "sampled": True,
    "spans_ms": [["cache", 1.0, 0.5], ["encode", 2.0, 8.0]],
}


def request_line(**fields: Any) -> str:
    """The line of a request with two stages."""
    return json.dumps(REQUEST_FIELDS | fields, separators=(",", ":"))


def logs_event(*messages: Any, kind: str = "DATA_MESSAGE") -> dict[str, Any]:
    """An event of CloudWatch Logs."""
    record = {
        "messageType": kind,
        "owner": "123456789012",
        "logGroup": "/aws/lambda/coldframe-predict",
        "logStream": "2026/11/24/[1]f",
        "logEvents": [{"id": str(n), "timestamp": 1, "message": each} for n, each in enumerate(messages)],
    }
    return packed_event(json.dumps(record).encode())


def packed_event(content: bytes) -> dict[str, Any]:
    """An event as CloudWatch Logs packs it."""
    return {"awslogs": {"data": base64.b64encode(gzip.compress(content)).decode()}}


class Collector:
    """Spans in the order of their arrival, and the statuses that answer the next requests.

    silent: requests get no answer while it is set.
    """

    def __init__(self) -> None:
        self.silent = threading.Event()
        self.leaving = threading.Event()
        self.headers: list[Mapping[str, str]] = []
        self.url = ""
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self.paths: list[str] = []
        self.statuses: list[int] = []
        self.rejected_spans = 0
        self._arrival = threading.Condition()

    def take(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Status and body of an answer. Raises DecodeError or ParseError for a body that is not OTLP.

        headers: names in lower case.
        """
        is_json = headers["content-type"] == "application/json"
        request = _from_json(body) if is_json else ExportTraceServiceRequest.FromString(body)
        with self._arrival:
            self.paths.append(path)
            self.headers.append(headers)
            status = self.statuses.pop(0) if self.statuses else 200
            if status == 200:
                for resource in request.resource_spans:
                    facts = {fact.key: fact.value.string_value for fact in resource.resource.attributes}
                    self.services.add(facts["service.name"])
                    for scope in resource.scope_spans:
                        self.spans.extend(scope.spans)
            self._arrival.notify_all()
        partial = ExportTracePartialSuccess(rejected_spans=self.rejected_spans)
        answer = ExportTraceServiceResponse(partial_success=partial)
        return status, json_format.MessageToJson(answer).encode() if is_json else answer.SerializeToString()

    def wait_for(self, is_complete: Callable[[], bool], limit_s: float = 60.0) -> bool:
        """Whether the condition held at the arrival of a request within the limit."""
        with self._arrival:
            return self._arrival.wait_for(is_complete, limit_s)


def _from_json(body: bytes) -> ExportTraceServiceRequest:
    """A request of OTLP's JSON, which has hex where protobuf's has base64. Unknown fields are an error."""
    request = json.loads(body)
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in {"traceId", "spanId", "parentSpanId"} & span.keys():
                    span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    message = ExportTraceServiceRequest()
    json_format.ParseDict(request, message)
    return message


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on a free port of this machine."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, answer = collector.take(self.path, body, headers)
            if collector.silent.is_set():
                collector.leaving.wait()
                return
            self.send_response(status)
            if status == 429:
                self.send_header("retry-after", "0")
            self.send_header("content-type", headers["content-type"])
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
        collector.leaving.set()
        server.shutdown()
        thread.join()
        server.server_close()
