"""Simulation of Lambda on a trace, in virtual time: arrays in, arrays out.

The kernel runs under numba where it is installed (extra `plan`), else under Python, with the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from coldframe.capacity.states import Limits
from coldframe_local.planner.simulator import kernel, provisioning
from coldframe_local.planner.simulator.numba_switch import HAS_NUMBA, compiled
from coldframe_local.planner.simulator.rules import Changes, Rules

Floats = npt.NDArray[np.floating[Any]]
Engine = Literal["auto", "python", "numba"]

_BLOCK = 65_536  # what is looked at in one go: no pass over a trace takes memory in proportion to it


@dataclass(frozen=True)
class Workload:
    """Invocations in the order of their arrival.

    arrivals_s: float64, at least 0. durations_s: float32, without any init phase. pools: which version of
    which function each asks, by its place in `Setup.pools`; None: all of them the first. crashes: whether
    the environment is lost at its end; None: never.
    """

    arrivals_s: Floats
    durations_s: Floats
    pools: npt.NDArray[np.uint16] | None = None
    crashes: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.arrivals_s)


@dataclass(frozen=True)
class Function:
    """Settings that a function's versions share. keeps_s: idle times of environments, in the order of their
    start, repeated. synchronous: a caller waits for each result; events from a queue have no request rate."""

    keeps_s: Sequence[float] = (600.0,)
    reserved: int | None = None
    synchronous: bool = True


@dataclass(frozen=True)
class Pool:
    """One version of a function. inits_s, restores_s: of its environments, in the order of their start."""

    inits_s: Sequence[float]
    function: int = 0
    provisioned: int = 0
    snapstart: bool = False
    restores_s: Sequence[float] = (0.0,)


@dataclass(frozen=True, order=True)
class Change:
    """A change of the configuration at a moment.

    kind: of `provisioning`: PROVISION (of: a pool, value: the target), RESERVE (of: a function, value: what
    is reserved, -1 for nothing) or RECYCLE (of: a function whose code has changed).
    """

    at_s: float
    kind: int
    of: int
    value: int = 0


@dataclass(frozen=True)
class Setup:
    """An account with its functions. limits: the account's; `reserved_concurrency` is each function's own."""

    pools: tuple[Pool, ...]
    functions: tuple[Function, ...] = (Function(),)
    limits: Limits = field(default_factory=Limits)
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True)
class Run:
    """Result of each invocation: bits of `kernel`, and its wait for an init phase.

    started: environments of each function. provisioned_init_s: of each pool, init phases ahead of traffic.
    """

    outcomes: npt.NDArray[np.uint8]
    waits_s: npt.NDArray[np.float32]
    started: npt.NDArray[np.int64]
    provisioned_init_s: npt.NDArray[np.float64]

    def of(self, mask: npt.NDArray[np.bool_]) -> Run:
        """The same run with the chosen invocations only."""
        return replace(self, outcomes=self.outcomes[mask], waits_s=self.waits_s[mask])


def simulate(workload: Workload, setup: Setup, engine: Engine = "auto") -> Run:
    """Every invocation of the workload, by the rules of `setup`.

    Raises ValueError when the workload is not in order, and ImportError for an engine that is not installed.
    """
    _check(workload)
    count = len(workload)
    run = Run(
        np.zeros(count, np.uint8),
        np.zeros(count, np.float32),
        np.zeros(len(setup.functions), np.int64),
        np.zeros(len(setup.pools)),
    )
    numba = engine == "numba" or (engine == "auto" and HAS_NUMBA)
    view: Callable[[Any], Any] = _array if numba else memory_of
    rules, changes = as_rules(workload, setup), as_changes(setup)
    kernel_of = _compiled() if numba else kernel.simulate
    kernel_of(
        view(np.asarray(workload.arrivals_s, np.float64)),
        view(np.asarray(workload.durations_s, np.float32)),
        view(np.zeros(0, np.uint16) if workload.pools is None else np.asarray(workload.pools, np.uint16)),
        view(np.zeros(0, np.uint8) if workload.crashes is None else np.asarray(workload.crashes, np.uint8)),
        Rules._make(view(value) if isinstance(value, np.ndarray) else value for value in rules),
        Changes(*map(view, changes)),
        *map(view, (run.outcomes, run.waits_s, run.started, run.provisioned_init_s)),
    )
    return run


def as_rules(workload: Workload, setup: Setup) -> Rules:
    """The setup as the kernel reads it."""
    limits = setup.limits
    per_s, growth = limits.requests_per_environment_s, limits.request_growth
    rates = [] if per_s is None else [per_s * bound for bound in _bounds(setup)]
    rates += [] if growth is None else [float(growth)]
    return Rules(
        function_of=np.array([pool.function for pool in setup.pools], np.int64),
        snapstart=np.array([pool.snapstart for pool in setup.pools], np.uint8),
        synchronous=np.array([function.synchronous for function in setup.functions], np.uint8),
        inits_s=_draws([pool.inits_s for pool in setup.pools]),
        restores_s=_draws([pool.restores_s for pool in setup.pools]),
        keeps_s=_draws([function.keeps_s for function in setup.functions]),
        account_concurrency=limits.account_concurrency,
        max_age_s=float("inf") if limits.max_age_s is None else float(limits.max_age_s),
        scaling_burst=-1 if limits.scaling_per_s is None else limits.scaling_burst,
        scaling_per_s=float(limits.scaling_per_s or 0.0),
        allocation_burst=limits.allocation_burst,
        allocation_per_s=float(limits.allocation_per_s or 0.0),
        allocation_delay_s=float(limits.allocation_delay_s),
        requests_per_environment_s=-1.0 if per_s is None else float(per_s),
        request_growth=-1 if growth is None else growth,
        # A second with no more arrivals than each rate needs no counting.
        rated=bool(rates) and _may_exceed(workload.arrivals_s, min(rates)),
        provisioned=any(pool.provisioned for pool in setup.pools)
        or any(change.kind == provisioning.PROVISION for change in setup.changes),
        most_due=_most_due(setup),
    )


def as_changes(setup: Setup) -> Changes:
    """The configuration at the start, and its changes in the order of time."""
    first = [
        Change(0.0, provisioning.RESERVE, number, function.reserved)
        for number, function in enumerate(setup.functions)
        if function.reserved is not None
    ]
    first += [
        Change(0.0, provisioning.PROVISIONED_BEFORE, number, pool.provisioned)
        for number, pool in enumerate(setup.pools)
        if pool.provisioned
    ]
    changes = first + sorted(setup.changes, key=lambda change: change.at_s)
    return Changes(
        np.array([change.at_s for change in changes], np.float64),
        np.array([change.kind for change in changes], np.int64),
        np.array([change.of for change in changes], np.int64),
        np.array([change.value for change in changes], np.int64),
    )


def _bounds(setup: Setup) -> list[int]:
    """The account's concurrency, and every reservation that a function has at some time."""
    own = [setup.limits.account_concurrency]
    own += [function.reserved for function in setup.functions if function.reserved is not None]
    return own + [
        change.value for change in setup.changes if change.kind == provisioning.RESERVE and change.value >= 0
    ]


def _most_due(setup: Setup) -> int:
    """Invocations in flight, init phases ahead of traffic, and init phases given up before their end."""
    targets = [pool.provisioned for pool in setup.pools]
    changed = [change.value for change in setup.changes if change.kind == provisioning.PROVISION]
    recycles = sum(change.kind == provisioning.RECYCLE for change in setup.changes)
    provisioned = sum(targets) + sum(changed)
    return setup.limits.account_concurrency + provisioned * (2 + recycles)


def _may_exceed(arrivals_s: Floats, rate: float) -> bool:
    """Whether more than this number of arrivals may fall into one second of the clock."""
    most = int(min(rate, len(arrivals_s)))
    blocks = range(0, len(arrivals_s) - most, _BLOCK)
    return any(np.any(_gaps(arrivals_s, start, most) < 1.0) for start in blocks)


def _gaps(arrivals_s: Floats, start: int, apart: int) -> Floats:
    """Time from each arrival of a block to the arrival `count` places later."""
    later = arrivals_s[start + apart : start + apart + _BLOCK]
    return later - arrivals_s[start : start + len(later)]


def _check(workload: Workload) -> None:
    arrivals_s = workload.arrivals_s
    blocks = (arrivals_s[start : start + _BLOCK + 1] for start in range(0, len(arrivals_s), _BLOCK))
    if any(block[0] < 0 or np.any(block[1:] < block[:-1]) for block in blocks):
        raise ValueError("Arrivals are not in order, or before 0. Sort them, and count from the first.")
    for name in ("durations_s", "pools", "crashes"):
        values = getattr(workload, name)
        if values is not None and len(values) != len(arrivals_s):
            raise ValueError(f"{name} has {len(values)} values for {len(arrivals_s)} arrivals.")


def _draws(of_each: Sequence[Sequence[float]]) -> npt.NDArray[np.float64]:
    """One row for each; shorter ones are repeated to the length of the longest, cut there."""
    longest = max(len(draws) for draws in of_each)
    return np.array([np.resize(np.asarray(draws, np.float64), longest) for draws in of_each])


def _array(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values


def memory_of(values: npt.NDArray[Any]) -> memoryview:
    """Python reads one value of a memoryview faster than one of an array, and as its own float."""
    return memoryview(np.ascontiguousarray(values))  # type: ignore[arg-type]


@cache
def _compiled() -> Callable[..., None]:
    return compiled(kernel.simulate)
