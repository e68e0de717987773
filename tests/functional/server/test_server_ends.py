"""How the server ends: nothing that it accepted is lost, nothing that it refuses is left without a word."""

import asyncio
import json
import signal
import socket
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from coldframe.pipeline.predictor import Predictor
from coldframe.server import facts
from tests.support.server_process import PATIENCE_S, ServerProcess, serving

pytestmark = pytest.mark.waits

CONNECTIONS = 200
CLOSED = (ConnectionRefusedError,)
HEAD = "POST /v1/predict HTTP/1.1\r\nhost: here\r\ncontent-length: {}\r\n\r\n"


def text_of(client: int, number: int) -> str:
    return f"Client {client} asks for the {number}th time what the goalie said about the shuttle"


async def ask(reader: Any, writer: Any, text: str) -> tuple[int, dict[str, str], dict[str, Any]]:
    """Status, headers and body of one answer. Raises when the connection ends before all of it is there."""
    body = json.dumps({"text": text, "heads": ["logreg"], "scores": True, "cache": False})
    writer.write((HEAD.format(len(body)) + body).encode())
    await writer.drain()
    return await read_answer(reader)


async def read_answer(reader: Any) -> tuple[int, dict[str, str], dict[str, Any]]:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    content = await reader.readexactly(int(headers["content-length"]))
    return int(first.split()[1]), headers, json.loads(content)


async def ask_until_told(port: int, client: int, answers: dict[str, Any], told: Counter[str]) -> None:
    """One connection after another, one request after another, until the server says that it ends."""
    number = 0
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except CLOSED:
            told["refused connection"] += 1
            return
        try:
            while True:
                number += 1
                text = text_of(client, number)
                status, headers, answer = await ask(reader, writer, text)
                told[str(status)] += 1
                if status == 200:
                    answers[text] = answer["predictions"][0]["heads"]["logreg"]["scores"]
                if headers.get("connection") == "close":
                    told["close"] += 1
                    break
                if status != 200:
                    assert "retry-after" in headers, answer
            if status == 503:
                return
        finally:
            writer.close()


async def load_and_end(server: ServerProcess, after: int) -> tuple[dict[str, Any], Counter[str]]:
    answers: dict[str, Any] = {}
    told: Counter[str] = Counter()
    clients = [
        asyncio.create_task(ask_until_told(server.port, client, answers, told))
        for client in range(CONNECTIONS)
    ]
    while len(answers) < after:
        done = [client for client in clients if client.done()]
        assert not done, done[0]
        await asyncio.sleep(0.001)
    server.process.send_signal(signal.SIGTERM)
    await asyncio.wait_for(asyncio.gather(*clients), PATIENCE_S)
    return answers, told


@pytest.mark.parametrize("after", [1, 150, 600])
def test_nothing_accepted_is_lost(bundle: Path, predictor: Predictor, after: int) -> None:
    """SIGTERM with hundreds of requests in flight: each has an answer, 200 or a refusal; exit code 0.

    No connection is reset, no answer is cut. Every 200 has the scores of the text alone, to the bit.
    """
    with serving(bundle, COLDFRAME_LOG_LEVEL="off", COLDFRAME_OBJECTIVE_MS="60000") as server:
        answers, told = asyncio.run(load_and_end(server, after))
        assert server.wait() == facts.DRAINED
        assert server.event("ended")["unanswered"] == 0
        assert server.event("leaving")["in_flight"] > 0
    assert told["200"] == len(answers) >= after
    labels = predictor.manifest.labels
    for text in list(answers)[:: max(1, len(answers) // 100)]:
        row = memoryview(predictor.predict([text], ["logreg"], False).answers["logreg"][0]).cast("f")
        assert answers[text] == dict(zip(labels, row, strict=False))


def test_notice_before_the_end(bundle: Path) -> None:
    """During the notice readiness is false, and requests are still accepted and answered."""
    with serving(bundle, COLDFRAME_DRAIN_NOTICE_S="3") as server, server.client() as client:
        server.process.send_signal(signal.SIGTERM)
        server.event("leaving")
        assert client.get(facts.READY).status_code == 503
        assert client.get(facts.HEALTH).status_code == 503
        assert client.get(facts.LIVE).status_code == 200
        assert client.post("/v1/predict", json={"text": "Orbit"}).status_code == 200
        assert server.wait() == facts.DRAINED


def test_half_a_request_is_waited_for(bundle: Path) -> None:
    """A request whose body is still on its way when the signal comes is answered; a new one is refused."""
    body = b'{"text": "Orbit", "heads": ["mlp"]}'
    with serving(bundle) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as connection:
            connection.sendall(HEAD.format(len(body)).encode() + body[:10])
            wait_for_requests(server, 1)
            server.process.send_signal(signal.SIGTERM)
            server.event("leaving")
            wait_until_closed(server.port)
            connection.sendall(body[10:])
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"connection: close" in answer
        assert server.wait() == facts.DRAINED


def test_who_never_sends_the_rest_is_cut(bundle: Path) -> None:
    """When the grace is over the process ends, and says that a request had no answer: exit code 1."""
    with serving(bundle, COLDFRAME_DRAIN_GRACE_S="1") as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as connection:
            connection.sendall(HEAD.format(100).encode())
            wait_for_requests(server, 1)
            server.process.send_signal(signal.SIGTERM)
            assert server.wait() == facts.FAILED
        assert server.event("ended")["unanswered"] == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_second_signal_ends_at_once(bundle: Path, number: int, code: int) -> None:
    """Although a request is unfinished, and the grace is long."""
    with (
        serving(bundle, COLDFRAME_DRAIN_GRACE_S="3600") as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as connection,
    ):
        connection.sendall(HEAD.format(100).encode())
        wait_for_requests(server, 1)
        server.process.send_signal(number)
        server.event("leaving")
        assert server.end(number) == code


def test_a_device_that_ends_with_an_error_ends_readiness(bundle: Path) -> None:
    """A defect ends the thread that makes passes: requests get 503, and so do readiness and liveness.

    The log says where, without the error's words; and a signal still ends the process.
    """
    tensor = {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["A comet"]}
    fatal = {"inputs": [tensor], "parameters": {"priority": 1000}}
    with serving(bundle, module="tests.support.breaking_server") as server, server.client() as client:
        assert client.post("/v1/predict", json={"text": "Orbit", "heads": ["mlp"]}).status_code == 200
        broken = client.post("/v2/models/topics-logreg/infer", json=fatal)
        assert (broken.status_code, broken.json()["title"]) == (503, "Not ready")
        later = client.post("/v1/predict", json={"text": "The goalie", "heads": ["mlp"], "cache": False})
        probes = [client.get(path) for path in (facts.LIVE, facts.READY, facts.HEALTH)]
        assert [reply.status_code for reply in (later, *probes)] == [503] * 4
        assert client.get(facts.METRICS).status_code == 200
        assert server.end() == facts.DRAINED
        errors = [line["error"] for line in server.lines if line.get("path") == facts.LIVE]
    assert errors[0].startswith("NotReady: ZeroDivisionError at ")
    assert "quokka" not in json.dumps(server.lines)


def test_a_signal_while_it_loads(bundle: Path) -> None:
    """Nobody has been accepted: it ends with 0."""
    server = ServerProcess(bundle)
    try:
        server.event("listening")
        assert server.end(signal.SIGINT) == facts.DRAINED
    finally:
        server.close()


def wait_for_requests(server: ServerProcess, count: int) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while server.metrics()["coldframe_requests_in_flight"] < count:
        assert time.monotonic() < deadline_s


def wait_until_closed(port: int) -> None:
    """Until new connections are refused."""
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            return
        assert time.monotonic() < deadline_s
