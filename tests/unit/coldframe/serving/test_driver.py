"""The threads of a device: what they do while there is nothing to do."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from coldframe.errors import NotReady
from coldframe.model.tokenizer import Window
from coldframe.scheduling.jobs import Outcome, Work
from coldframe.scheduling.limits import Limits
from coldframe.scheduling.pass_times import PassTimes
from coldframe.scheduling.scheduler import Run, Scheduler
from coldframe.serving.driver import Driver, Ticket
from coldframe.timing import MovingAverage
from coldframe.vectors import Vector, to_vector

_MANY, _LONG_ENOUGH_S = 200, 0.5


class Counting(Scheduler):
    """A scheduler that knows how often it was asked for a pass. asked_often: set after many times."""

    def __init__(self, workers: int) -> None:
        super().__init__(Limits(workers=workers), {"encoder": PassTimes()})
        self.times = 0
        self.asked_often = threading.Event()

    def next_run(self, now_s: float) -> Run | None:
        self.times += 1
        if self.times == _MANY:
            self.asked_often.set()
        return super().next_run(now_s)


class Lengths:
    """An encoder whose embedding of a row is its length."""

    dimension = 1

    def encode(self, rows: Sequence[Window]) -> list[Vector]:
        return [to_vector([len(row)]) for row in rows]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_an_idle_driver_rests(workers: int) -> None:
    """Threads that find nothing to do wake nobody: two that did took a server's processors."""
    scheduler, encoder = Counting(workers), Lengths()
    driver = Driver(scheduler, {"encoder": encoder}, {"encoder": MovingAverage(0.1)})
    try:
        for rows in range(1, 6):
            ticket = Ticket([[1] * rows])
            driver.submit(Work("encoder", [rows]), ticket)
            assert ticket.wait() is Outcome.DONE
            assert ticket.embeddings == [to_vector([rows])]
        assert driver.drain(timeout_s=60)
        assert not scheduler.asked_often.wait(_LONG_ENOUGH_S)
    finally:
        driver.close()


class Breaking(Scheduler):
    """A scheduler with a defect: it raises when its first pass ends."""

    def finish(self, run: Run, now_s: float, failed: bool = False) -> None:
        raise ZeroDivisionError


class Held(Lengths):
    """Its first pass ends when it is told to."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()

    def encode(self, rows: Sequence[Window]) -> list[Vector]:
        self.begun.set()
        assert self.may_end.wait(60)
        return super().encode(rows)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_defect_of_the_scheduler_fails_all_who_wait(workers: int) -> None:
    """Who is in the pass and who waits for one get an error, who comes later is refused, and threads end."""
    encoder = Held()
    scheduler = Breaking(Limits(workers=workers), {"encoder": PassTimes()})
    driver = Driver(scheduler, {"encoder": encoder}, {"encoder": MovingAverage(0.1)})
    driver.check()
    tickets = [Ticket([[1] * 4]) for _ in range(4)]
    for ticket in tickets:
        driver.submit(Work("encoder", [4]), ticket)
    assert encoder.begun.wait(60)
    encoder.may_end.set()
    assert [ticket.wait() for ticket in tickets] == [Outcome.FAILED] * 4
    assert all(isinstance(ticket.error, NotReady) for ticket in tickets)
    with pytest.raises(NotReady, match="ended with an error"):
        driver.submit(Work("encoder", [4]), Ticket([[1] * 4]))
    with pytest.raises(NotReady):
        driver.check()
    assert driver.stats().queued_jobs == 0
    driver.close()
