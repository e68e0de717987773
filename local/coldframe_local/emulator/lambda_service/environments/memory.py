"""The memory of an environment's process: what it holds, what it held at most, what is too much."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MB = 1024 * 1024
_CHECK_S = 0.02


class MemoryMeter:
    """The memory of one process, read from files that stay open: it is asked on every request."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._status = _open_proc(pid, "status")
        self._statm = _open_proc(pid, "statm")

    def peak_mb(self) -> int | None:
        """The most that the process has held so far, in whole MB; None once it is gone."""
        if self._status is None:
            return _ps_memory_mb(self._pid)
        _, label, rest = _read_proc(self._status).partition(b"VmHWM:")
        return _whole_mb(rest.split(None, 1)[0]) if label else None

    def resident_mb(self) -> int | None:
        """Memory in use now, in whole MB; None after the process has ended, or without /proc."""
        if self._statm is None:
            return None
        fields = _read_proc(self._statm).split()
        return -(-int(fields[1]) * _PAGE_BYTES // _MB) if fields else None

    def close(self) -> None:
        """Frees the files."""
        for file in (self._status, self._statm):
            if file is not None:
                os.close(file)
        self._status = self._statm = None


def _open_proc(pid: int, name: str) -> int | None:
    try:
        return os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _read_proc(file: int) -> bytes:
    try:
        return os.pread(file, 4096, 0)
    except ProcessLookupError:
        return b""


def _ps_memory_mb(pid: int) -> int | None:
    """Where there is no /proc (macOS): what the process holds now, a lower bound of its peak."""
    if Path("/proc/self").exists():
        return None
    answer = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=False)
    return _whole_mb(answer.stdout.strip()) if answer.stdout.strip() else None


def _whole_mb(kilobytes: bytes) -> int:
    return -(-int(kilobytes) // 1024)


class Measured(Protocol):
    """A process whose memory can be told."""

    def measure_memory_mb(self) -> int:
        """The most that it has held, as far as that could be measured."""

    def resident_memory_mb(self) -> int:
        """Memory in use now; 0 if it cannot be read."""


class MemoryLimit:
    """Watches an environment's process of the moment, and calls `exceeded` when it holds too much.

    A limit on address space (RLIMIT_AS) would also count what is mapped and never touched: onnxruntime's
    arenas, threads' stacks and shared libraries, several times what Lambda counts. So what the process
    really holds is looked at while it works, and its peak when it answers.
    """

    def __init__(self, limit_mb: int, exceeded: Callable[[], None]) -> None:
        self.peak_mb = 0
        self._limit_mb = limit_mb
        self._exceeded = exceeded
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, process: Measured) -> None:
        """Looks at what a process holds, again and again, until `unwatch`."""
        self.unwatch()
        self._timer = asyncio.get_running_loop().call_later(_CHECK_S, self._check, process)

    def unwatch(self) -> None:
        """Looks no more: nothing of the environment works."""
        if self._timer is not None:
            self._timer.cancel()

    def is_exceeded(self, process: Measured) -> bool:
        """Whether a process has ever held more than the limit; notes its peak, up to the limit."""
        held_mb = process.measure_memory_mb()
        self.peak_mb = max(self.peak_mb, min(held_mb, self._limit_mb))
        return held_mb > self._limit_mb

    def _check(self, process: Measured) -> None:
        if process.resident_memory_mb() > self._limit_mb:
            self.peak_mb = self._limit_mb
            self._exceeded()
        else:
            self.watch(process)
