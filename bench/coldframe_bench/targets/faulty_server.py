"""An HTTP server in front of another one, which fails as it is told to."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

Fault = Callable[["Exchange"], bool]
"""Answers a request in its own way and says True, or says False: then it goes to the real server."""


_NO_HEADERS: Mapping[str, str] = {}
_OF_AN_OBJECT = frozenset({"ETag", "Content-Range", "Content-Length"})


class Exchange(BaseHTTPRequestHandler):
    """One request, and the means to answer it well or badly."""

    protocol_version = "HTTP/1.1"
    server: "FaultyServer"
    body: bytes

    @property
    def operation(self) -> str:
        """`BatchGetItem` and the like of DynamoDB; of S3 the method."""
        return self.headers.get("x-amz-target", self.command).rpartition(".")[2]

    @property
    def asked(self) -> Any:
        """The JSON of the request."""
        return json.loads(self.body)

    def answer(
        self,
        status: int,
        content: bytes,
        kind: str = "application/x-amz-json-1.0",
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> bool:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        return True

    def answer_json(self, status: int, content: object) -> bool:
        return self.answer(status, json.dumps(content).encode())

    def forward(self, body: bytes | None = None) -> bytes:
        """The real server's answer to this request, or to it with another body."""
        upstream = HTTPConnection(self.server.upstream, timeout=30)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "content-length"}
        upstream.request(self.command, self.path, self.body if body is None else body, headers)
        reply = upstream.getresponse()
        content = reply.read()
        upstream.close()
        self.status, self.kind = reply.status, reply.headers.get("Content-Type", "")
        kept = _OF_AN_OBJECT if self.command == "HEAD" else _OF_AN_OBJECT - {"Content-Length"}
        self.kept = {name: value for name, value in reply.headers.items() if name in kept}
        return content

    def handle_request(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.calls.append(self.operation)
        self.server.bodies.append(self.body)
        if not self.server.fault(self):
            content = self.forward()
            self.answer(self.status, content, self.kind, self.kept)

    do_GET = do_PUT = do_POST = do_HEAD = handle_request  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass


class FaultyServer(ThreadingHTTPServer):
    """Forwards to `upstream` (host:port) unless `fault` answers; counts calls and connections."""

    daemon_threads = True

    def __init__(self, upstream: str, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.upstream = upstream
        self.fault: Fault = works
        self.calls: list[str] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        self.released = threading.Event()
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.server_port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections += 1
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up is what is measured and tested here."""

    def count(self, operation: str) -> int:
        return self.calls.count(operation)


@contextmanager
def faulty_server(upstream_url: str, tls: ssl.SSLContext | None = None) -> Iterator[FaultyServer]:
    """A running server; at the end it lets go of everyone whom it keeps waiting."""
    server = FaultyServer(urlsplit(upstream_url).netloc, tls)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


def works(exchange: Exchange) -> bool:
    """No fault."""
    return False


def error(code: str, status: int = 400) -> Fault:
    """An error as DynamoDB writes it."""
    kind = f"com.amazonaws.dynamodb.v20120810#{code}"
    return lambda exchange: exchange.answer_json(status, {"__type": kind, "message": "as told"})


def content(body: bytes, status: int = 200, kind: str = "application/x-amz-json-1.0") -> Fault:
    """Always the same answer."""
    return lambda exchange: exchange.answer(status, body, kind)


def hangs(exchange: Exchange) -> bool:
    """Takes the request and never answers."""
    exchange.server.released.wait()
    exchange.close_connection = True
    return True


def trickles(exchange: Exchange) -> bool:
    """Sends a byte now and then, so that no single read is ever late, and never ends."""
    exchange.send_response(200)
    exchange.send_header("Content-Length", "1000000")
    exchange.end_headers()
    while not exchange.server.released.wait(0.01):
        exchange.wfile.write(b" ")
    return True


def trickles_headers(exchange: Exchange) -> bool:
    """The same, in the header."""
    exchange.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while not exchange.server.released.wait(0.01):
        exchange.wfile.write(b"x")
    return True


def hangs_up(exchange: Exchange) -> bool:
    """Closes the connection without a word."""
    exchange.close_connection = True
    exchange.connection.shutdown(socket.SHUT_RDWR)
    return True


def breaks_off(exchange: Exchange) -> bool:
    """Half of an answer."""
    whole = exchange.forward()
    exchange.send_response(200)
    exchange.send_header("Content-Length", str(len(whole)))
    exchange.end_headers()
    exchange.wfile.write(whole[: len(whole) // 2])
    return hangs_up(exchange)


def processes(keys: int) -> Fault:
    """Most keys or items processed in each call; the others come back unprocessed, as under throttling."""

    def fault(exchange: Exchange) -> bool:
        ((table, table_keys),) = exchange.asked["RequestItems"].items()
        reading = exchange.operation == "BatchGetItem"
        entries = table_keys["Keys"] if reading else table_keys
        done, left = entries[:keys], entries[keys:]
        if done:
            part = {table: {"Keys": done} if reading else done}
            reply = json.loads(exchange.forward(json.dumps({"RequestItems": part}).encode()))
        else:
            reply = {"Responses": {}} if reading else {}
        name = "UnprocessedKeys" if reading else "UnprocessedItems"
        rest = {table: {"Keys": left} if reading else left} if left else {}
        return exchange.answer_json(200, reply | {name: rest})

    return fault


def first(count: int, fault: Fault) -> Fault:
    """The fault for this number of calls, then none."""
    left = [count]

    def until_then(exchange: Exchange) -> bool:
        left[0] -= 1
        return fault(exchange) if left[0] >= 0 else False

    return until_then


@contextmanager
def full_backlog() -> Iterator[str]:
    """The address of a socket that lets nobody in any more: to connect to it is to wait."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        for _ in range(8):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())
            waiting.append(sock)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            for sock in waiting:
                sock.close()


def closed_port() -> str:
    """An address where nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{sock.getsockname()[1]}"
