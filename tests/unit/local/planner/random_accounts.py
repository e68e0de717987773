"""Accounts and workloads of any kind, for hypothesis and for long seeded runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from coldframe.capacity.states import Limits
from coldframe_local.planner.simulator.provisioning import PROVISION, RECYCLE, RESERVE
from coldframe_local.planner.simulator.simulator import Change, Function, Pool, Setup, Workload

# Halves make ties between ends, arrivals and changes; other numbers make sums that round.
SECONDS = st.integers(0, 12).map(lambda halves: halves / 2) | st.floats(0.0, 8.0)
LIMITS = st.builds(
    Limits,
    account_concurrency=st.integers(0, 8),
    scaling_burst=st.integers(0, 8),
    scaling_per_s=st.none() | st.floats(0.0, 2.0),
    request_growth=st.none() | st.integers(0, 6),
    max_age_s=st.none() | st.floats(0.0, 30.0),
    requests_per_environment_s=st.none() | st.floats(0.0, 3.0),
    allocation_burst=st.integers(0, 3),
    allocation_per_s=st.none() | st.floats(0.5, 3.0),
    allocation_delay_s=st.just(0.0) | SECONDS,
)
FUNCTION = st.builds(
    Function,
    keeps_s=st.lists(SECONDS, min_size=1, max_size=4),
    reserved=st.none() | st.integers(0, 6),
    synchronous=st.booleans(),
)


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    """Up to three functions with up to two versions each, and up to eight changes."""
    functions = draw(st.lists(FUNCTION, min_size=1, max_size=3))
    pools = [
        draw(
            st.builds(
                Pool,
                inits_s=st.lists(SECONDS, min_size=1, max_size=3),
                function=st.just(function),
                provisioned=st.integers(0, 3),
                snapstart=st.booleans(),
                restores_s=st.lists(SECONDS, min_size=1, max_size=2),
            )
        )
        for function in range(len(functions))
        for _ in range(draw(st.integers(1, 2)))
    ]
    of_pools, of_functions = st.integers(0, len(pools) - 1), st.integers(0, len(functions) - 1)
    moments = st.integers(0, 60).map(lambda halves: halves / 2) | st.floats(0.0, 30.0)
    change = (
        st.builds(Change, moments, st.just(PROVISION), of_pools, st.integers(0, 4))
        | st.builds(Change, moments, st.just(RESERVE), of_functions, st.integers(-1, 5))
        | st.builds(Change, moments, st.just(RECYCLE), of_functions)
    )
    changes = draw(st.lists(change, max_size=8))
    return Setup(tuple(pools), tuple(functions), draw(LIMITS), tuple(changes))


def random_workload(pools: int, seed: int, invocations: int = 150) -> Workload:
    """Dense enough that limits bind; on half seconds for an even seed, so that moments tie."""
    source = np.random.default_rng(seed)
    most_s = source.choice([0.5, 1.0, 3.0])
    gaps_s = source.uniform(0.0, most_s, invocations) * (source.random(invocations) < 0.6)
    durations_s = source.uniform(0.0, 4.0, invocations)
    if seed % 2 == 0:
        gaps_s, durations_s = np.round(2 * gaps_s) / 2, np.round(2 * durations_s) / 2
    return Workload(
        np.cumsum(gaps_s),
        durations_s.astype(np.float32),
        source.integers(0, pools, invocations).astype(np.uint16) if pools > 1 else None,
        source.random(invocations) < 0.05 if seed % 3 else None,
    )


def long_run(invocations: int, seed: int) -> tuple[Workload, Setup]:
    """Three functions whose limits bind now and then, with changes all along."""
    source = np.random.default_rng(seed)
    arrivals_s = np.cumsum(source.exponential(0.02, invocations))
    limits = Limits(
        account_concurrency=14,
        scaling_burst=6,
        scaling_per_s=1.0,
        requests_per_environment_s=6.0,
        request_growth=30,
        max_age_s=90.0,
        allocation_delay_s=1.5,
    )
    functions = tuple(
        Function(keeps_s=tuple(source.uniform(1.0, 20.0, 50)), reserved=reserved)
        for reserved in (None, 5, None)
    )
    pool = Pool(inits_s=tuple(source.uniform(0.1, 2.0, 50)), restores_s=(0.2, 0.3))
    pools = tuple(
        replace(pool, function=function, snapstart=snapstart, provisioned=provisioned)
        for function, snapstart, provisioned in ((0, False, 2), (0, True, 0), (1, False, 1), (2, False, 0))
    )
    moments = np.linspace(0.0, arrivals_s[-1], 300)
    changes = tuple(
        Change(float(moment), kind, int(source.integers(pools_or_functions)), int(source.integers(4)))
        for moment, kind, pools_or_functions in zip(
            moments,
            source.permutation([PROVISION] * 250 + [RESERVE] * 25 + [RECYCLE] * 25),
            moments,
            strict=True,
        )
        for pools_or_functions in (4 if kind == PROVISION else 3,)
    )
    workload = Workload(
        arrivals_s,
        source.gamma(2.0, 0.1, invocations).astype(np.float32),
        source.integers(0, 4, invocations).astype(np.uint16),
        source.random(invocations) < 0.01,
    )
    return workload, Setup(pools, functions, limits, changes)
