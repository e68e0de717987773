"""The Runtime API on its own socket, spoken to byte by byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from coldframe_local.emulator.lambda_service.environments.runtime_api import Invocation, RuntimeApi

pytestmark = pytest.mark.anyio

PREFIX = "/2018-06-01/runtime"
INVOCATION = Invocation("id-1", b'{"a": 1}', 1700000029000, "arn:aws:lambda:x", "Root=1-x")


@pytest.fixture
def anyio_backend() -> str:
    """The loop of the standard library, beside the uvloop of the emulator's tests."""
    return "asyncio"


class Recorder:
    """A listener that writes down what it is told, and works on id-1."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []
        self.poll = asyncio.Event()

    def polled(self) -> None:
        self.poll.set()

    def loaded(self) -> None:
        self.poll.set()

    def restore_failed(self, error_type: str, payload: bytes) -> None:
        self.told.append(("restore_failed", error_type, payload))

    def responded(self, request_id: str, payload: bytes) -> bool:
        self.told.append(("responded", request_id, payload))
        return request_id == "id-1"

    def failed(self, request_id: str, error_type: str, payload: bytes) -> bool:
        self.told.append(("failed", request_id, error_type, payload))
        return request_id == "id-1"

    def init_failed(self, error_type: str, payload: bytes) -> None:
        self.told.append(("init_failed", error_type, payload))


class Client:
    """One keep-alive connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, method: str, path: str, body: bytes = b"", headers: str = "") -> None:
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
        self.writer.write(head.encode() + body)

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers with names in lower case, body."""
        first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return int(first.split()[1]), headers, body

    async def ask(self, method: str, path: str, body: bytes = b"", headers: str = "") -> tuple[int, bytes]:
        self.send(method, path, body, headers)
        status, _, content = await self.answer()
        return status, content


@asynccontextmanager
async def connected(listener: Recorder) -> AsyncIterator[tuple[RuntimeApi, Client]]:
    api = RuntimeApi(listener)
    host, port = (await api.open()).split(":")
    client = Client(*await asyncio.open_connection(host, int(port)))
    try:
        yield api, client
    finally:
        api.close()
        client.writer.close()
        await client.writer.wait_closed()


async def test_next_waits_for_an_invocation() -> None:
    """`next` is a long poll; the invocation comes with Lambda's headers."""
    listener = Recorder()
    async with connected(listener) as (api, client):
        client.send("GET", f"{PREFIX}/invocation/next")
        await listener.poll.wait()
        api.offer(INVOCATION)
        status, headers, body = await client.answer()
    assert (status, body) == (200, b'{"a": 1}')
    assert headers["lambda-runtime-aws-request-id"] == "id-1"
    assert headers["lambda-runtime-deadline-ms"] == "1700000029000"
    assert headers["lambda-runtime-invoked-function-arn"] == "arn:aws:lambda:x"
    assert headers["lambda-runtime-trace-id"] == "Root=1-x"


async def test_close_ends_a_waiting_next() -> None:
    """A poll that is waiting when the API closes sees the end of its connection."""
    listener = Recorder()
    async with connected(listener) as (api, client):
        client.send("GET", f"{PREFIX}/invocation/next")
        await listener.poll.wait()
        api.close()
        assert await client.reader.read() == b""


async def test_response_and_error_reach_the_listener() -> None:
    """Result, error and init error are accepted and told with their id, type and payload."""
    listener = Recorder()
    error_type = "Lambda-Runtime-Function-Error-Type: Runtime.Odd\r\n"
    async with connected(listener) as (_, client):
        statuses = [
            await client.ask("POST", f"{PREFIX}/invocation/id-1/response", b"[1]"),
            await client.ask("POST", f"{PREFIX}/invocation/id-1/error", b"{}", error_type),
            await client.ask("POST", f"{PREFIX}/init/error", b"{}", error_type),
        ]
    assert [status for status, _ in statuses] == [202, 202, 202]
    assert listener.told == [
        ("responded", "id-1", b"[1]"),
        ("failed", "id-1", "Runtime.Odd", b"{}"),
        ("init_failed", "Runtime.Odd", b"{}"),
    ]


async def test_answer_to_another_invocation_is_refused() -> None:
    """An id that is not being worked on is a bad request, by name."""
    async with connected(Recorder()) as (_, client):
        status, body = await client.ask("POST", f"{PREFIX}/invocation/id-2/response", b"[1]")
    assert status == 400
    assert json.loads(body)["errorType"] == "InvalidRequestID"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("POST", f"{PREFIX}/invocation/next"),
        ("GET", f"{PREFIX}/invocation/id-1/response"),
        ("POST", f"{PREFIX}/invocation/id-1/other"),
    ],
)
async def test_other_routes_are_not_found(method: str, path: str) -> None:
    """Only the documented routes and methods exist."""
    listener = Recorder()
    async with connected(listener) as (_, client):
        status, _ = await client.ask(method, path)
    assert status == 404
    assert listener.told == []


async def test_result_over_the_limit_is_refused() -> None:
    """A result over Lambda's limit answers 413 and fails the invocation."""
    listener = Recorder()
    async with connected(listener) as (_, client):
        status, _ = await client.ask("POST", f"{PREFIX}/invocation/id-1/response", b"x" * 6_291_557)
    assert status == 413
    [(kind, request_id, error_type, payload)] = listener.told
    assert (kind, request_id, error_type) == ("failed", "id-1", "Function.ResponseSizeTooLarge")
    assert isinstance(payload, bytes)
    assert json.loads(payload)["errorType"] == error_type


async def test_result_at_the_limit_is_accepted() -> None:
    """The limit itself still passes, also for a client that waits to be told to go on."""
    listener = Recorder()
    async with connected(listener) as (_, client):
        client.send(
            "POST", f"{PREFIX}/invocation/id-1/response", b"x" * 6_291_556, "Expect: 100-continue\r\n"
        )
        assert (await client.answer())[0] == 100
        assert (await client.answer())[0] == 202
    assert len(listener.told) == 1


async def test_what_is_not_http_ends_the_connection() -> None:
    """Bytes that are no HTTP request are answered by hanging up."""
    async with connected(Recorder()) as (_, client):
        client.writer.write(b"\x16\x03\x01 hello\r\n\r\n")
        assert await client.reader.read() == b""
