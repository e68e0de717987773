"""The threads of a device: what they do while there is nothing to do."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest

from coldframe.model.encoder import Embeddings
from coldframe.model.tokenizer import Window
from coldframe.scheduling.jobs import Outcome, Work
from coldframe.scheduling.limits import Limits
from coldframe.scheduling.pass_times import PassTimes
from coldframe.scheduling.scheduler import Run, Scheduler
from coldframe.serving.driver import Driver, Ticket
from coldframe.timing import MovingAverage

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

    def encode(self, rows: Sequence[Window]) -> Embeddings:
        return np.array([[len(row)] for row in rows], dtype=np.float32)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_an_idle_driver_rests(workers: int) -> None:
    """Threads that find nothing to do wake nobody: two that did took a server's processors."""
    scheduler, encoder = Counting(workers), Lengths()
    driver = Driver(scheduler, {"encoder": encoder}, {"encoder": MovingAverage(0.1)})
    try:
        for rows in range(1, 6):
            ticket = Ticket([[1] * rows], encoder.dimension)
            driver.submit(Work("encoder", [rows]), ticket)
            assert ticket.wait() is Outcome.DONE
            assert ticket.embeddings.tolist() == [[rows]]
        assert driver.drain(timeout_s=60)
        assert not scheduler.asked_often.wait(_LONG_ENOUGH_S)
    finally:
        driver.close()
