"""The open loop against real targets."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from coldframe.capacity.arrivals import constant
from coldframe_bench.benchmarks.load import (
    CACHE_OFF,
    CACHE_ON,
    NULL,
    LoadOptions,
    load_points,
    load_table,
    run,
)
from coldframe_bench.loader.open_loop import TIMEOUT, Load, send
from coldframe_bench.loader.verdict import Slo
from coldframe_bench.records.raw_files import Answer, Fact, read_results
from coldframe_bench.targets.serving import listening

pytestmark = pytest.mark.measures

DUE = constant(200, 60, 0)


def test_null_target_answers_everything() -> None:
    """Each request is answered, none is sent before it is due, and latency runs from then."""
    with listening("-m", "coldframe_bench.targets.null_target") as url:
        answered = send(Load("null", url, 200, DUE, [b"{}"] * 60))
    assert [record.status for record in answered.records] == [200] * 60
    assert answered.bodies == [b"{}"] * 60
    for record, due_s in zip(answered.records, DUE, strict=True):
        assert record.due_s == due_s
        assert record.sent_s >= due_s
        assert record.latency_ms >= (record.sent_s - record.due_s) * 1e3


def test_slow_target_is_offered_no_less() -> None:
    """A target that answers nobody before all have asked is sent every request: none waits for another."""
    with patient_target(callers=60) as url:
        answered = send(Load("patient", url, 200, DUE, [b"{}"] * 60))
    assert [record.status for record in answered.records] == [200] * 60


@contextmanager
def patient_target(callers: int) -> Iterator[str]:
    """A target that answers once so many connections are open at the same time."""
    with socket.create_server(("127.0.0.1", 0), backlog=callers) as listener:

        def serve() -> None:
            connections = [listener.accept()[0] for _ in range(callers)]
            for connection in connections:
                with connection:
                    connection.recv(65_536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        thread.join()


def test_silence_is_a_timeout() -> None:
    """A target that never answers is a timeout, of the length that was chosen."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        answered = send(Load("silent", url, 200, DUE[:3], [b"{}"] * 3, timeout_s=0.5))
    assert {record.error for record in answered.records} == {TIMEOUT}
    assert all(record.latency_ms >= 500 for record in answered.records)


def test_nobody_listens() -> None:
    """A refused connection is an answer with an error, not the end of the run."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        answered = send(Load("gone", url, 200, DUE[:3], [b"{}"] * 3))
    assert {record.error for record in answered.records} == {"ConnectionRefusedError"}


def test_local_api_under_load(bundle: Path, tmp_path: Path) -> None:
    """A whole run: the null target first, then our API without and with its cache."""
    slo = Slo(bound_ms=60_000)
    options = LoadOptions(
        bundle, tmp_path / "load.jsonl", 0, slo, start_rps=20, requests=30, warm_up_s=0.5, limit_rps=20
    )
    results = read_results(run(options))
    points = {point.target: point for point in load_points(results)}
    assert list(points) == [NULL, CACHE_OFF, CACHE_ON]
    assert points[CACHE_OFF].success == points[CACHE_ON].success == 1.0
    assert all("too few" in points[target].verdict for target in (CACHE_OFF, CACHE_ON))
    facts = {(fact.name, fact.subject): fact.value for fact in results.of(Fact)}
    assert facts["peak_rps", CACHE_OFF] == 20
    assert facts["hit_share", "cache off at 20 rps"] == 0
    assert facts["hit_share", "cache on at 20 rps"]
    assert len([answer for answer in results.of(Answer) if answer.target == CACHE_OFF]) == 40
    assert "**20**" in load_table(results)
