"""The emulator's connections, byte by byte: what clients that are slow, rude or leaving get."""

from __future__ import annotations

import asyncio
import errno
import json
import signal
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from coldframe_local.emulator.front.emulator import Emulator
from tests.support.emulation import PATIENCE_S, running_pids, until
from tests.support.running import SERVE, LogLines, emulator_process, options, serving

pytestmark = [pytest.mark.waits, pytest.mark.anyio]

HALF_A_BODY = b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf"


@asynccontextmanager
async def connection(
    url: str, receive_buffer: int | None = None
) -> AsyncIterator[tuple[StreamReader, StreamWriter]]:
    """Bytes to the emulator and back. receive_buffer: how much the client takes without reading."""
    host, port = url.removeprefix("http://").split(":")
    connected = socket.socket()
    if receive_buffer is not None:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connected.connect((host, int(port)))
    reader, writer = await asyncio.open_connection(sock=connected, limit=1024)
    try:
        yield reader, writer
    finally:
        writer.close()


def request(body: Any = None, method: str = "POST", path: str = "/", **headers: str) -> bytes:
    """A request whose JSON body is what `handlers.say` answers with."""
    content = b"" if body is None else json.dumps(body).encode()
    given = {"host": "x", "content-type": "application/json", "content-length": str(len(content)), **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + content


async def answers_on_one_connection(url: str, *requests: bytes) -> bytes:
    """All that comes back; the last request has to close the connection."""
    async with asyncio.timeout(PATIENCE_S), connection(url) as (reader, writer):
        writer.write(b"".join(requests))
        return await reader.read()


LAST = request({"statusCode": 201, "body": "the next answer"}, connection="close")


@pytest.mark.parametrize("status", [204, 304])
async def test_status_without_content_leaves_the_connection_usable(lines: LogLines, status: int) -> None:
    """204 and 304 have no body on the wire, whatever the function returns, and no length."""
    said = {"statusCode": status, "headers": {"x-kept": "1"}, "body": "too much"}
    async with Emulator(options(lines, handler="handlers.say")) as emulator:
        answers = await answers_on_one_connection(emulator.url, request(said), LAST)
    _, first, second = answers.split(b"HTTP/1.1 ")
    head, _, body = first.partition(b"\r\n\r\n")
    assert (head[:3], body) == (str(status).encode(), b"")
    assert b"x-kept: 1" in head
    assert b"content-length" not in head
    assert second.endswith(b"\r\n\r\nthe next answer")


@pytest.mark.parametrize(
    "name", ["Content-Length", "content-length", "Transfer-Encoding", "Connection", "Keep-Alive", "Upgrade"]
)
async def test_framing_of_an_answer_is_the_emulator_s(lines: LogLines, name: str) -> None:
    """What a function says about length and transfer coding does not reach the wire."""
    said = {"statusCode": 200, "headers": {name: "5000"}, "body": "short"}
    async with Emulator(options(lines, handler="handlers.say")) as emulator:
        answers = await answers_on_one_connection(emulator.url, request(said), LAST)
    _, first, second = answers.split(b"HTTP/1.1 ")
    assert first.endswith(b"\r\n\r\nshort")
    assert b"5000" not in first
    assert second.endswith(b"\r\n\r\nthe next answer")


async def test_head_has_the_length_and_not_the_body(lines: LogLines) -> None:
    """HEAD gets the head that GET would get, and the next answer follows it at once."""
    said = {"statusCode": 200, "body": "short"}
    async with Emulator(options(lines, handler="handlers.say")) as emulator:
        answers = await answers_on_one_connection(emulator.url, request(said, method="HEAD"), LAST)
    _, first, second = answers.split(b"HTTP/1.1 ")
    assert b"content-length: 5\r\n" in first
    assert first.endswith(b"\r\n\r\n")
    assert second.endswith(b"\r\n\r\nthe next answer")


@pytest.mark.parametrize("status", [100, 101, 103, 199])
async def test_interim_status_is_malformed(lines: LogLines, status: int) -> None:
    """A function cannot end a request with a status after which clients wait for another one."""
    async with Emulator(options(lines, handler="handlers.say")) as emulator:
        answers = await answers_on_one_connection(emulator.url, request({"statusCode": status}), LAST)
    _, first, second = answers.split(b"HTTP/1.1 ")
    assert first.startswith(b"502 ")
    assert second.endswith(b"\r\n\r\nthe next answer")


@pytest.mark.parametrize("name", ["", "a b: c", "a:b", "x\u00e9", "a\tb", "(a)"])
async def test_bad_header_name_is_a_malformed_result(lines: LogLines, name: str) -> None:
    """A name that HTTP does not allow is the function's failure: a 502, a line in the log, and no more."""
    said = {"statusCode": 200, "headers": {name: "value"}, "body": "x"}
    async with Emulator(options(lines, handler="handlers.say")) as emulator:
        answers = await answers_on_one_connection(emulator.url, request(said), LAST)
    _, first, second = answers.split(b"HTTP/1.1 ")
    assert first.startswith(b"502 ")
    assert second.endswith(b"\r\n\r\nthe next answer")
    assert len([line for line in lines if "name of a header" in line]) == 1


@pytest.mark.parametrize("value", ["a\x01b", "a\x7f", "a\x0bb", "a\r\nb: c", "a\0"])
async def test_control_characters_in_a_header_are_a_malformed_result(lines: LogLines, value: str) -> None:
    """A value with control characters is the function's failure too, and splits no answer in two."""
    said = {"statusCode": 200, "headers": {"x-a": value}, "body": "x"}
    async with Emulator(options(lines, handler="handlers.say")) as emulator:
        answers = await answers_on_one_connection(emulator.url, request(said), LAST)
    _, first, second = answers.split(b"HTTP/1.1 ")
    assert first.startswith(b"502 ")
    assert second.endswith(b"\r\n\r\nthe next answer")


async def test_half_closed_connection_gets_its_answer(lines: LogLines) -> None:
    """A client that says that it sends no more still reads; then the connection ends."""
    said = {"statusCode": 200, "body": "to a client that only listens"}
    async with Emulator(options(lines, handler="handlers.say")) as emulator, asyncio.timeout(PATIENCE_S):
        for _ in range(20):
            async with connection(emulator.url) as (reader, writer):
                writer.write(request(said))
                writer.write_eof()
                answer = await reader.read()
            assert answer.endswith(b"\r\n\r\nto a client that only listens")


async def test_half_closed_connection_gets_all_its_answers(lines: LogLines) -> None:
    """Requests that were sent in a row before the end are all answered."""
    requests = [request({"statusCode": 200, "body": f"answer {number}"}) for number in range(3)]
    async with (
        Emulator(options(lines, handler="handlers.say")) as emulator,
        asyncio.timeout(PATIENCE_S),
        connection(emulator.url) as (reader, writer),
    ):
        writer.write(b"".join(requests))
        writer.write_eof()
        answers = await reader.read()
    assert [answer[-8:] for answer in answers.split(b"HTTP/1.1 ")[1:]] == [
        b"answer 0",
        b"answer 1",
        b"answer 2",
    ]


async def test_log_that_cannot_be_written_costs_no_request(lines: LogLines) -> None:
    """A full disk under the log leaves concurrency and answers alone."""

    def full(line: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with serving(lines, log=full, max_environments=1) as client:
        statuses = [
            (await client.get(path)).status_code for path in ("/echo", "/fail", "/malformed", "/echo")
        ]
    assert statuses == [200, 502, 502, 200]


@pytest.mark.parametrize("sent", [b"POST /ec", HALF_A_BODY], ids=["a line", "half a body"])
async def test_request_that_never_ends_is_given_up(
    lines: LogLines, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    """A client that stops in the middle of a request gets 408 and is let go."""
    monkeypatch.setattr("coldframe_local.emulator.front.emulator.READ_TIMEOUT_S", 0.05)
    async with Emulator(options(lines)) as emulator:
        answer = await answers_on_one_connection(emulator.url, sent)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"content-type: application/problem+json" in answer


@pytest.mark.parametrize("sent", [b"", b"\r\n"], ids=["nothing", "no request"])
async def test_connection_without_a_request_is_closed(
    lines: LogLines, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    """Without a word: a client that never begins gets no answer."""
    monkeypatch.setattr("coldframe_local.emulator.front.emulator.READ_TIMEOUT_S", 0.05)
    async with Emulator(options(lines)) as emulator:
        assert await answers_on_one_connection(emulator.url, sent) == b""


async def test_connection_that_says_nothing_more_is_closed(
    lines: LogLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty lines after an answer begin no request, and keep no connection."""
    monkeypatch.setattr("coldframe_local.emulator.front.emulator.READ_TIMEOUT_S", 0.05)
    async with (
        Emulator(options(lines)) as emulator,
        asyncio.timeout(PATIENCE_S),
        connection(emulator.url) as (reader, writer),
    ):
        writer.write(request(method="GET", path="/echo"))
        await reader.readuntil(b"}")
        writer.write(b"\r\n")
        await reader.read()


async def test_function_may_take_longer_than_a_request(
    lines: LogLines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The limit is on what the client sends: a request that is whole is waited for."""
    monkeypatch.setattr("coldframe_local.emulator.front.emulator.READ_TIMEOUT_S", 0.05)
    async with serving(lines, environ={"GATE": str(tmp_path)}) as client:
        waiting = asyncio.create_task(client.get("/gate"))
        await until(lambda: len(running_pids(tmp_path)) == 1)
        given_up = await answers_on_one_connection(str(client.base_url), b"POST /ec")
        assert given_up.startswith(b"HTTP/1.1 408 ")
        (tmp_path / "open").touch()
        assert (await waiting).status_code == 200


async def test_what_is_no_http_is_a_problem(lines: LogLines) -> None:
    """Bytes of TLS get 400, and a reader learns why."""
    async with Emulator(options(lines)) as emulator:
        answer = await answers_on_one_connection(emulator.url, b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in answer


async def test_signal_ends_the_emulator_in_the_middle_of_a_body(tmp_path: Path) -> None:
    """A client that never sends the rest of its body holds nothing up."""
    async with (
        emulator_process(tmp_path) as (process, client),
        connection(str(client.base_url)) as (reader, writer),
    ):
        writer.write(HALF_A_BODY)
        await client.get("/echo")
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(PATIENCE_S):
            assert await process.wait() == 0
            assert await reader.read() == b""


async def test_signal_ends_the_emulator_with_an_answer_unread(tmp_path: Path) -> None:
    """Nor does a client that asks for megabytes and does not read them."""
    async with (
        emulator_process(tmp_path) as (process, client),
        connection(str(client.base_url), receive_buffer=4096) as (reader, writer),
    ):
        writer.write(request(method="GET", path="/large"))
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(PATIENCE_S):
            assert await process.wait() == 0


NEVER_ENDS = """
import asyncio
from coldframe_local.emulator.front.emulator import Emulator
async def stays(*error):
    print("leaving", flush=True)
    await asyncio.sleep(3600)
Emulator.__aexit__ = stays
"""


async def test_second_signal_ends_the_emulator_at_once(tmp_path: Path) -> None:
    """Whatever holds the end up, whoever asks twice is not kept waiting."""
    async with emulator_process(tmp_path, NEVER_ENDS + SERVE) as (process, _), asyncio.timeout(PATIENCE_S):
        assert process.stdout is not None
        process.send_signal(signal.SIGINT)
        while await process.stdout.readline() != b"leaving\n":
            pass
        process.send_signal(signal.SIGINT)
        assert await process.wait() == -signal.SIGINT
