"""Progress: a bar on a terminal, few lines in a log."""

import io
import sys
from collections.abc import Sequence
from typing import Any

import pytest
import tqdm.std
from hypothesis import given
from hypothesis import strategies as st

from coldframe.progress import Progress, announce


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of tqdm."""
    clock = Clock()
    monkeypatch.setattr(tqdm.std, "time", clock)
    return clock


def work(clock: Clock, durations_s: Sequence[float], **options: Any) -> None:
    """Works on items that take these seconds."""
    for duration_s in Progress(durations_s, **options):
        clock.now_s += duration_s


def test_quick_work_writes_nothing(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    """Work of less than five seconds leaves no line in a log."""
    work(clock, [1.0] * 4, desc="simulating", unit="step")
    assert capsys.readouterr().err == ""


def test_lines_of_long_work(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    """Lines are at least five seconds apart, the first one too; each has count and time."""
    work(clock, [2.0] * 13, desc="simulating", unit="step")
    assert capsys.readouterr().err.splitlines() == [
        "simulating: 3 of 13 steps (00:06)",
        "simulating: 6 of 13 steps (00:12)",
        "simulating: 9 of 13 steps (00:18)",
        "simulating: 12 of 13 steps (00:24)",
    ]


@given(durations=st.lists(st.floats(0, 100), max_size=60))
def test_lines_are_few(durations: list[float]) -> None:
    """A log gets at most one line in five seconds; nothing is redrawn in it."""
    clock, log = Clock(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tqdm.std, "time", clock)
        patch.setattr(sys, "stderr", log)
        work(clock, durations, desc="measuring", unit="round")
    total_s = sum(durations)
    assert len(log.getvalue().splitlines()) <= total_s / 5
    assert not set("\r\x1b") & set(log.getvalue())


def test_phases_are_lines_at_once(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    """The name of a phase does not wait: the phase may last for minutes."""
    with Progress(desc="build", unit="step", total=2) as bar:
        bar.set_postfix_str("export")
        bar.update()
        clock.now_s += 60
        bar.set_postfix_str("verify")
    assert capsys.readouterr().err.splitlines() == [
        "build: export (00:00)",
        "build: verify, 1 of 2 steps (01:00)",
    ]


@pytest.mark.parametrize("nested", [False, True])
def test_bar_on_a_terminal(clock: Clock, monkeypatch: pytest.MonkeyPatch, nested: bool) -> None:
    """A terminal gets a bar."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    for _ in Progress(range(2), desc="outer", unit="round"):
        if nested:
            list(Progress(range(2), desc="inner", leave=False))
    assert "100%" in terminal.getvalue()
    assert "\r" in terminal.getvalue()


def test_announcements(capsys: pytest.CaptureFixture[str]) -> None:
    """A phase that cannot be counted is announced by its name."""
    announce("training the estimator")
    assert capsys.readouterr().err == "training the estimator\n"
