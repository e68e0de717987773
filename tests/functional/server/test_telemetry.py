"""Telemetry of real processes: the emulator's functions and the server, with a collector and without."""

import json
import os
import signal
import socket
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from coldframe.telemetry.spans import Span, spans_of
from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.options import EmulatorOptions
from coldframe_local.emulator.template.template import load_template
from tests.conftest import ROOT
from tests.support.collectors import Collector, collecting
from tests.support.emulation import until
from tests.support.running import client_of, coldframe_up
from tests.support.server_process import PATIENCE_S, serving

pytestmark = pytest.mark.waits

SECRET = "zyxwv-secret-4711"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADERS = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
STAGES = {"cache", "tokenize", "estimate", "encode", "heads"}


def request_body(**fields: Any) -> dict[str, Any]:
    return {"text": f"The goalie made forty saves {SECRET}", "heads": ["logreg"], "cache": False} | fields


def check_one_request(collector: Collector, returned: str) -> None:
    """One request reached the collector: its span, and a span for each stage below it."""
    assert collector.wait_for(lambda: len(collector.spans) >= 1 + len(STAGES))
    by_name = {span.name: span for span in collector.spans}
    request = by_name.pop("POST /v1/predict")
    assert by_name.keys() == STAGES
    assert request.trace_id.hex() == TRACE
    assert request.parent_span_id.hex() == PARENT
    assert returned == f"00-{TRACE}-{request.span_id.hex()}-01"
    for span in collector.spans:
        if span is not request:
            assert span.parent_span_id == request.span_id
            assert request.start_time_unix_nano <= span.start_time_unix_nano
            assert span.end_time_unix_nano <= request.end_time_unix_nano + 1_000_000
        assert SECRET.encode() not in span.SerializeToString()


def test_the_emulator_sends_a_trace_of_each_request(bundle: Path) -> None:
    with (
        collecting() as collector,
        coldframe_up("listening on", arguments=["--otlp", collector.url]) as (url,),
    ):
        answer = httpx.post(f"{url}/v1/predict", json=request_body(), headers=HEADERS, timeout=120)
        assert answer.status_code == 200
        check_one_request(collector, answer.headers["traceparent"])
        assert collector.services == {"coldframe"}


def test_the_server_sends_a_trace_of_each_request(bundle: Path) -> None:
    with collecting() as collector, serving(bundle, COLDFRAME_OTLP_ENDPOINT=collector.url) as server:
        with server.client() as client:
            answer = client.post("/v1/predict", json=request_body(), headers=HEADERS)
        check_one_request(collector, answer.headers["traceparent"])
        assert collector.services == {"coldframe-server"}


def test_a_server_answers_and_ends_while_its_collector_is_down(bundle: Path) -> None:
    with collecting() as collector:
        url = collector.url
    with serving(bundle, COLDFRAME_OTLP_ENDPOINT=url) as server:
        with server.client() as client:
            statuses = [client.post("/v1/predict", json=request_body()).status_code for _ in range(50)]
        assert statuses == [200] * 50
        assert server.end() == 0


def test_without_settings_a_server_returns_no_trace(bundle: Path) -> None:
    with serving(bundle) as server:
        with server.client() as client:
            answer = client.post("/v1/predict", json=request_body(), headers=HEADERS)
        assert "traceparent" not in answer.headers
        server.end()
    lines = [line for line in server.lines if line.get("event") == "request"]
    assert not any({"trace_id", "spans_ms", "_aws", "stage_blocks"} & line.keys() for line in lines)


def test_metrics_are_in_the_lines_of_requests(bundle: Path) -> None:
    with serving(bundle, COLDFRAME_METRICS_NAMESPACE="Coldframe/test") as server:
        with server.client() as client:
            for _ in range(3):
                client.post("/v1/predict", json=request_body())
            client.post("/v1/predict", json=request_body(heads=["no such head"]))
        server.end()
    lines = [line for line in server.lines if line.get("path") == "/v1/predict"]
    assert [line["requests"] for line in lines] == [1, 1, 1, 1]
    assert [line.get("refused") for line in lines] == [None, None, None, 1]
    assert all(line["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Coldframe/test" for line in lines)
    assert all(line["time"].endswith("Z") and line["duration_ms"] > 0 for line in lines)
    assert all(line["time"].endswith("Z") and line["duration_ms"] >= 0 for line in server.lines)
    assert {line["event"] for line in server.lines} >= {"listening", "ready", "leaving", "ended"}
    assert SECRET not in json.dumps(server.lines)
    assert "no such head" not in json.dumps(server.lines)


def test_control_characters_in_headers_forge_no_line(bundle: Path) -> None:
    """Whether a header is refused or read, the log shows none of it, and has a line per answer."""
    head = b"GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
    controls = (b"\n ", b"\r\n ", b"\r", b"\x00", b"\x0b", b"\x1b", b"\x7f", b"\x85", b"\t")
    statuses: list[bytes] = []
    with serving(bundle, COLDFRAME_TRACES="log") as server:
        for control in controls:
            for name in (b"X-Request-Id", b"Traceparent", b"User-Agent"):
                request = head + name + b": a" + control + b'{"event": "forged"}\r\n\r\n'
                with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as connection:
                    connection.sendall(request)
                    statuses.append(b"".join(iter(partial(connection.recv, 65536), b"")).split()[1])
        server.end()
    assert set(statuses) == {b"400", b"404"}
    read = [line for line in server.lines if line["event"] == "request" and line["status"] == 404]
    assert len(read) == statuses.count(b"404")
    assert "forged" not in json.dumps(server.lines)


@pytest.mark.anyio
async def test_a_frozen_or_killed_environment_loses_no_span_of_an_answer(bundle: Path) -> None:
    """Spans are in the log with their answer: what ends the environment afterwards takes none along."""
    lines: list[str] = []
    template = load_template(ROOT / "template.yaml", {"CachePolicy": "off"})
    environ = {"COLDFRAME_TRACES": "log"}
    options = EmulatorOptions(template, port=0, environ=environ, max_environments=1, log=lines.append)
    traces: set[str] = set()
    async with Emulator(options) as emulator, client_of(emulator.url) as client:
        for blow in (signal.SIGSTOP, signal.SIGKILL):
            answer = await client.post("/v1/predict", json=request_body(text=f"A text before {blow.name}"))
            assert answer.status_code == 200, lines
            traces.add(answer.headers["traceparent"].split("-")[1])
            [environment] = emulator.service.snapshot().environments
            assert environment.pid is not None
            os.kill(environment.pid, blow)
            await until(lambda: traces <= {span.trace_id for span in logged_spans(lines)})
            if blow is signal.SIGSTOP:
                os.kill(environment.pid, signal.SIGKILL)
            await until(lambda: not emulator.service.snapshot().environments)
    assert len(traces) == 2
    for trace in traces:
        names = {span.name for span in logged_spans(lines) if span.trace_id == trace}
        assert names == {"POST /v1/predict", *STAGES}


def logged_spans(lines: list[str]) -> list[Span]:
    return [span for line in lines if line.startswith("{") for span in spans_of(line)]
