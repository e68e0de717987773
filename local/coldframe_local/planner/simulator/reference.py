"""The same simulation by the admission rules themselves: slow, and what the kernel is held to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from coldframe.capacity.admission import (
    Adjust,
    Arrival,
    Died,
    Event,
    Finished,
    Initialized,
    KeepAliveCheck,
    Lease,
    Recycle,
    SetLimits,
    SetProvisioned,
    SetSnapStart,
    Start,
    State,
    Throttle,
    ThrottleReason,
    claimed,
    decide,
    requested,
)
from coldframe.capacity.states import EnvironmentState
from coldframe_local.planner.simulator import kernel, provisioning
from coldframe_local.planner.simulator.rules import Rules
from coldframe_local.planner.simulator.simulator import Run, Setup, Workload, as_changes, as_rules

_REASONS = {
    ThrottleReason.RESERVED_CONCURRENCY: kernel.RESERVED_CONCURRENCY,
    ThrottleReason.ACCOUNT_CONCURRENCY: kernel.ACCOUNT_CONCURRENCY,
    ThrottleReason.INVOCATION_RATE: kernel.INVOCATION_RATE,
    ThrottleReason.RESERVED_REQUEST_RATE: kernel.RESERVED_REQUEST_RATE,
}


def simulate_by_rules(workload: Workload, setup: Setup) -> Run:
    """Results as `simulator.simulate` returns them, computed by `decide`."""
    world = _World(setup, as_rules(workload, setup))
    run = Run(
        np.zeros(len(workload), np.uint8),
        np.zeros(len(workload), np.float32),
        np.zeros(len(setup.functions), np.int64),
        np.zeros(len(setup.pools)),
    )
    changes = _each_change(setup)
    change = next(changes, None)
    for i, now in enumerate(workload.arrivals_s.tolist()):
        while change is not None and change[0] <= now:
            world.pass_until(change[0])
            world.change(*change)
            change = next(changes, None)
        world.pass_until(now)
        pool = 0 if workload.pools is None else int(workload.pools[i])
        crash = workload.crashes is not None and bool(workload.crashes[i])
        run.outcomes[i], run.waits_s[i] = world.arrive(pool, float(workload.durations_s[i]), crash, now)
    run.started[:] = [state.started for state in world.states]
    run.provisioned_init_s[:] = world.provisioned_init_s
    return run


def _each_change(setup: Setup) -> Iterator[tuple[float, int, int, int]]:
    changes = as_changes(setup)
    yield from zip(*(column.tolist() for column in changes), strict=True)


@dataclass
class _World:
    """All functions, and what is due: (moment, function, environment)."""

    setup: Setup
    rules: Rules
    states: list[State] = field(init=False)
    due: list[tuple[float, int, int]] = field(default_factory=list)
    crashes: set[tuple[int, int]] = field(default_factory=set)
    provisioned_init_s: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.states = [State(self.setup.limits) for _ in self.setup.functions]
        self.provisioned_init_s = [0.0 for _ in self.setup.pools]
        for number, pool in enumerate(self.setup.pools):
            if pool.snapstart:
                self.decide(pool.function, SetSnapStart(_version(number), True), 0.0)

    def decide(self, function: int, event: Event, now: float) -> Lease | Start | Throttle | None:
        """Starts what the rules want started ahead of traffic."""
        self.states[function], decision = decide(self.states[function], event, now)
        if not isinstance(decision, Adjust):
            return decision
        for environment_id in decision.start:
            environment = self.states[function].environments[environment_id]
            init_s = _draw(self.rules.inits_s[int(environment.version)], environment_id)
            heappush(self.due, (environment.started_at + init_s, function, environment_id))
        return None

    def pass_until(self, moment: float) -> None:
        """All that is due until this moment, the moment included."""
        while self.due and self.due[0][0] <= moment:
            now, function, environment_id = heappop(self.due)
            state = self.states[function]
            environment = state.environments.get(environment_id)
            if environment is None:
                continue  # stopped while it was loading
            if environment.state is EnvironmentState.INIT:
                self.provisioned_init_s[int(environment.version)] += _draw(
                    self.rules.inits_s[int(environment.version)], environment_id
                )
                self.decide(function, Initialized(environment_id), now)
            elif (function, environment_id) in self.crashes:
                self.crashes.remove((function, environment_id))
                self.decide(function, Died(environment_id), now)
            else:
                keep_s = _draw(self.rules.keeps_s[function], environment_id)
                self.decide(function, Finished(environment_id, keep_s), now)

    def change(self, now: float, kind: int, of: int, value: int) -> None:
        """One change of the configuration."""
        if kind in (provisioning.PROVISION, provisioning.PROVISIONED_BEFORE):
            level = SetProvisioned(_version(of), value, delayed=kind == provisioning.PROVISION)
            self.decide(self.setup.pools[of].function, level, now)
        elif kind == provisioning.RESERVE:
            reserved = None if value < 0 else value
            self.decide(of, SetLimits(replace(self.setup.limits, reserved_concurrency=reserved)), now)
        else:
            self.decide(of, Recycle(), now)

    def arrive(self, pool: int, duration_s: float, crash: bool, now: float) -> tuple[int, float]:
        """Outcome and seconds of waiting of one invocation."""
        function = self.setup.pools[pool].function
        others = [state for number, state in enumerate(self.states) if number != function]
        self.decide(function, KeepAliveCheck(), now)
        arrival = Arrival(
            _version(pool),
            sum(map(claimed, others)),
            sum(requested(state, now) for state in others),
            self.setup.functions[function].synchronous,
        )
        decision = self.decide(function, arrival, now)
        if isinstance(decision, Throttle):
            return _REASONS[decision.reason], 0.0
        if decision is None:
            raise AssertionError("an arrival was neither admitted nor refused")
        outcome, wait_s, environment_id = 0, 0.0, decision.environment_id
        if isinstance(decision, Start):
            draws = self.rules.restores_s if decision.restored else self.rules.inits_s
            wait_s = _draw(draws[pool], environment_id)
            outcome = kernel.COLD | (kernel.RESTORED if decision.restored else 0)
            self.decide(function, Initialized(environment_id), now)
        elif decision.provisioned:
            outcome = kernel.ON_PROVISIONED
        outcome |= kernel.SPILLOVER if decision.spillover else 0
        if crash:
            self.crashes.add((function, environment_id))
        heappush(self.due, (now + wait_s + duration_s, function, environment_id))
        return outcome, wait_s


def _version(pool: int) -> str:
    return f"{pool:05}"


def _draw(draws: npt.NDArray[np.float64], number: int) -> float:
    return float(draws[number % len(draws)])
