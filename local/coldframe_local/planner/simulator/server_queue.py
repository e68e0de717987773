"""Servers that are always on, instead of Lambda's environments: one queue, first come, first served."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from heapq import heapreplace
from typing import Any

import numpy as np
import numpy.typing as npt

from coldframe_local.planner.simulator.numba_switch import HAS_NUMBA, compiled
from coldframe_local.planner.simulator.simulator import Workload, memory_of


def queue_waits(workload: Workload, servers: int) -> npt.NDArray[np.float32]:
    """Seconds that each invocation waits for a server. Each server handles one invocation at a time."""
    waits_s = np.zeros(len(workload), np.float32)
    if HAS_NUMBA:
        _compiled()(workload.arrivals_s, workload.durations_s, servers, waits_s)
    else:
        _serve(memory_of(workload.arrivals_s), memory_of(workload.durations_s), servers, memory_of(waits_s))
    return waits_s


def _serve(arrivals_s: Any, durations_s: Any, servers: int, waits_s: Any) -> None:
    free_at = [0.0] * servers
    for i in range(len(arrivals_s)):
        starts_at = max(arrivals_s[i], free_at[0])
        heapreplace(free_at, starts_at + durations_s[i])
        waits_s[i] = starts_at - arrivals_s[i]


@cache
def _compiled() -> Callable[..., None]:
    return compiled(_serve)
