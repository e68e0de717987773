"""CPU in proportion to memory: an environment is stopped once it has used up its share of each period.

What the kernel does for a cgroup with `cpu.max`, done with signals, because a developer's machine
rarely lets anybody make cgroups: the process's CPU clock is read, SIGSTOP comes when the share of
the period is used up, SIGCONT with the next period. What was overdrawn is taken from the next share,
so that the average is kept although timers are late. Linux only: elsewhere there is no such clock.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time

from coldframe.capacity.limits import VCPU

_PERIOD_S = 0.02
_MIN_WAIT_S = 0.001  # what is overdrawn by waiting longer than needed is paid back


def vcpus(memory_mb: int) -> float:
    """The CPUs that Lambda gives to a function with so much memory."""
    return memory_mb / VCPU.value


def can_limit_cpu() -> bool:
    """Whether this system tells how much CPU another process has used."""
    return sys.platform == "linux"


class CpuLimit:
    """Keeps one process, with all its threads, to `vcpus` CPUs on average, until it is lifted."""

    def __init__(self, pid: int, vcpus: float) -> None:
        self._pid = pid
        self._share_s = vcpus * _PERIOD_S
        # The clock of all threads of another process, as clock_getcpuclockid(3) makes it.
        self._clock_id = (~pid << 3) | 2
        self._stopped = False
        self._lifted = False
        self._timer: asyncio.TimerHandle | None = None
        self._left_s = 0.0
        self._used_s = 0.0
        self._used_s = self._read()
        self._period_ends_s = time.monotonic()
        self._begin_period()

    def lift(self) -> None:
        """The process may run freely again."""
        self._lifted = True
        if self._timer is not None:
            self._timer.cancel()
        if self._stopped:
            self._signal(signal.SIGCONT)

    def _begin_period(self) -> None:
        self._charge()
        if self._lifted:
            return
        # Unused time is not saved up; overdrawn time is paid back.
        self._left_s = min(self._left_s, 0.0) + self._share_s
        now = time.monotonic()
        self._period_ends_s = max(self._period_ends_s + _PERIOD_S, now)
        if self._left_s > 0 and self._stopped:
            self._stopped = False
            self._signal(signal.SIGCONT)
        self._check()

    def _check(self) -> None:
        """Stops the process if its share is used up; else looks again when that may be so."""
        self._charge()
        if self._lifted:
            return
        until_end_s = max(0.0, self._period_ends_s - time.monotonic())
        if self._left_s <= 0 and not self._stopped:
            self._stopped = True
            self._signal(signal.SIGSTOP)
        loop = asyncio.get_running_loop()
        soonest_s = max(_MIN_WAIT_S, self._left_s / (os.cpu_count() or 1))
        if self._stopped or soonest_s >= until_end_s:
            self._timer = loop.call_later(until_end_s, self._begin_period)
        else:
            self._timer = loop.call_later(soonest_s, self._check)

    def _charge(self) -> None:
        used_s = self._read()
        self._left_s -= used_s - self._used_s
        self._used_s = used_s

    def _read(self) -> float:
        """CPU seconds so far; of a process that is gone, nothing more."""
        try:
            return time.clock_gettime(self._clock_id)
        except OSError:
            self._lifted = True
            return self._used_s

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._pid, number)
        except (ProcessLookupError, PermissionError):
            self._lifted = True
