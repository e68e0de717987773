"""What is VALID, what held, and how the highest rate is found."""

import re
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe_bench.loader.verdict import Slo, judge, search_peak
from coldframe_bench.records.raw_files import Answer

SLO = Slo()


def answers(count: int = 600, latency_ms: float = 50.0, **changes: object) -> list[Answer]:
    """Answers that are all alike, ten a second."""
    return [
        msgspec.structs.replace(Answer("t", 10.0, n / 10, n / 10, latency_ms, 200), **changes)
        for n in range(count)
    ]


def test_quick_and_right() -> None:
    """Enough quick, right answers hold the objective, and the run is VALID."""
    point = judge(answers(), SLO)
    assert (point.held, point.verdict, point.success) == (True, "VALID", 1.0)
    assert point.throughput_rps == pytest.approx(10, rel=0.01)


def test_slow() -> None:
    """Two slow answers in a hundred are over a 99th percentile."""
    given_answers = answers()
    given_answers[::50] = [msgspec.structs.replace(a, latency_ms=400.0) for a in given_answers[::50]]
    assert not judge(given_answers, SLO).held


def test_failures_count_as_slow() -> None:
    """Refused requests break the success share and never improve latency."""
    given_answers = answers(latency_ms=200.0)
    given_answers[::50] = [
        msgspec.structs.replace(a, latency_ms=1.0, status=429) for a in given_answers[::50]
    ]
    point = judge(given_answers, SLO)
    assert not point.held
    assert point.p50_ms.value == 200.0
    assert point.verdict == "VALID"


@pytest.mark.parametrize(
    ("given_answers", "loader_ms", "said"),
    [
        (answers(100), 0.0, "too few"),
        (answers(), 20.0, "loader itself takes 20.0 ms"),
        (answers(status=0, error="ConnectionRefusedError"), 0.0, "no answer \\(ConnectionRefusedError\\)"),
    ],
)
def test_invalid(given_answers: list[Answer], loader_ms: float, said: str) -> None:
    """Too few samples, a loader in the way and a dead target are INVALID, with the reason."""
    assert re.search(f"INVALID.*{said}", judge(given_answers, SLO, 0.0, loader_ms).verdict)


def test_late_loader() -> None:
    """Requests sent late are the loader's fault, and the run says so."""
    late = [msgspec.structs.replace(a, sent_s=a.due_s + 0.02) for a in answers()]
    assert "loader" in judge(late, SLO).verdict


def test_warm_up_is_dropped() -> None:
    """What is due in the warm-up does not count."""
    slow = [msgspec.structs.replace(a, latency_ms=5000.0) for a in answers(30)]
    later = [msgspec.structs.replace(a, due_s=a.due_s + 3, sent_s=a.sent_s + 3) for a in answers()]
    point = judge(slow + later, SLO, warm_up_s=3.0)
    assert (point.held, point.requests) == (True, 600)


@given(st.floats(0.5, 5_000), st.floats(1, 100), st.floats(0.02, 0.5))
def test_search_finds_the_limit(limit: float, start: float, precision: float) -> None:
    """The rate found holds, and one that is larger by the precision does not."""
    found = search_peak(lambda rate: rate <= limit, start, precision)
    assert found <= limit < found * (1 + precision) * (1 + 1e-9)


def test_search_ends() -> None:
    """A target that holds nothing has peak 0; one that holds everything is asked up to the limit."""
    assert search_peak(lambda rate: False, 10) == 0.0
    assert search_peak(lambda rate: rate <= 100 or pytest.fail("asked for more"), 10, limit_rps=100) == 80


def test_objective_is_a_parameter() -> None:
    """Another bound is another verdict."""
    assert not judge(answers(), replace(SLO, bound_ms=10.0)).held
