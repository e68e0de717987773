"""An environment's share of the CPU, in virtual time: a process that is always busy, and late timers."""

import heapq
import itertools
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe_local.emulator.lambda_service.environments import cpu
from coldframe_local.emulator.lambda_service.environments.cpu import CpuLimit


class Timer:
    """A call that is due. It is cancelled once."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call = call

    def cancel(self) -> None:
        self.call = lambda: None


class Machine:
    """One process on its own core, an event loop whose timers are late, and their clocks."""

    def __init__(self, seed: int = 0, most_late_s: float = 0.0) -> None:
        self.now_s = self.used_s = 0.0
        self.runs = True
        self._most_late_s = most_late_s
        self._random = random.Random(seed)
        self._timers: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        due_s = self.now_s + delay_s + self._random.uniform(0, self._most_late_s)
        timer = Timer(call)
        heapq.heappush(self._timers, (due_s, next(self._numbers), timer))
        return timer

    def monotonic(self) -> float:
        return self.now_s

    def clock_gettime(self, clock_id: int) -> float:
        return self.used_s

    def killpg(self, pid: int, number: signal.Signals) -> None:
        self.runs = number == signal.SIGCONT

    def run(self, seconds: float) -> None:
        while self._timers and self._timers[0][0] < seconds:
            due_s, _, timer = heapq.heappop(self._timers)
            self.used_s += (due_s - self.now_s) * self.runs
            self.now_s = due_s
            timer.call()


@contextmanager
def limited(machine: Machine, vcpus: float) -> Iterator[CpuLimit]:
    """The machine's process, held to so many CPUs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "time", machine)
        patch.setattr("os.killpg", machine.killpg)
        patch.setattr("asyncio.get_running_loop", lambda: machine)
        yield CpuLimit(1, vcpus)


@given(st.integers(0, 2**32), st.sampled_from([0.07, 0.25, 0.5, 0.9]), st.sampled_from([0, 0.002, 0.1]))
def test_share_holds_on_average(seed: int, vcpus: float, most_late_s: float) -> None:
    """A busy process gets its share of ten seconds: what a late timer overdraws is paid back."""
    machine = Machine(seed, most_late_s)
    with limited(machine, vcpus):
        machine.run(10.0)
    overdraft_s = most_late_s + 0.02 + 0.001
    assert machine.used_s <= vcpus * (machine.now_s + overdraft_s) + overdraft_s
    if not most_late_s:
        assert machine.used_s >= 0.9 * vcpus * machine.now_s


def test_lifted_process_runs() -> None:
    """A limit that is lifted leaves the process running, and never stops it again."""
    machine = Machine()
    with limited(machine, 0.25) as limit:
        machine.run(0.015)
        stopped = not machine.runs
        limit.lift()
        machine.run(1.0)
    assert (stopped, machine.runs) == (True, True)
