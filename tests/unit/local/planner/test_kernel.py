"""The kernel and the admission rules agree, outcome for outcome, under both engines."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe.capacity.states import Limits
from coldframe_local.planner.simulator import kernel
from coldframe_local.planner.simulator.provisioning import PROVISION, RESERVE
from coldframe_local.planner.simulator.reference import simulate_by_rules
from coldframe_local.planner.simulator.simulator import (
    Change,
    Engine,
    Function,
    Pool,
    Run,
    Setup,
    Workload,
    simulate,
)
from tests.unit.local.planner.random_accounts import long_run, random_workload, setups

ENGINES: tuple[Engine, ...] = ("python", "numba")


def assert_equal(mine: Run, theirs: Run) -> None:
    differing = np.flatnonzero((mine.outcomes != theirs.outcomes) | (mine.waits_s != theirs.waits_s))
    assert differing.tolist() == []
    assert mine.started.tolist() == theirs.started.tolist()
    assert mine.provisioned_init_s.tolist() == pytest.approx(theirs.provisioned_init_s.tolist())


@settings(max_examples=250, deadline=None)
@given(setups(), st.integers(0, 2**32))
def test_kernel_does_what_the_rules_say(setup: Setup, seed: int) -> None:
    """Any account, any workload: the same outcome, and the same time of waiting, for every invocation."""
    workload = random_workload(len(setup.pools), seed)
    expected = simulate_by_rules(workload, setup)
    for engine in ENGINES:
        assert_equal(simulate(workload, setup, engine), expected)


@pytest.fixture(scope="module")
def by_rules() -> tuple[Workload, Setup, Run]:
    """A long run, by `decide`."""
    workload, setup = long_run(250_000, seed=14)
    return workload, setup, simulate_by_rules(workload, setup)


@pytest.mark.parametrize("engine", ENGINES)
def test_kernel_does_what_the_rules_say_over_a_million_events(
    engine: Engine, by_rules: tuple[Workload, Setup, Run]
) -> None:
    """250,000 invocations, each an arrival, an init phase or lease, an end and a check, and every kind of
    outcome among them."""
    workload, setup, expected = by_rules
    assert_equal(simulate(workload, setup, engine), expected)
    seen = set(np.unique(expected.outcomes).tolist())
    assert seen >= {
        0,
        kernel.COLD,
        kernel.COLD | kernel.RESTORED,
        kernel.ON_PROVISIONED,
        kernel.SPILLOVER,
        kernel.COLD | kernel.SPILLOVER,
        kernel.RESERVED_CONCURRENCY,
        kernel.ACCOUNT_CONCURRENCY,
        kernel.INVOCATION_RATE,
        kernel.RESERVED_REQUEST_RATE,
    }


@pytest.mark.parametrize("engine", ENGINES)
def test_requests_of_a_reservation_count_for_the_account_once_it_is_given_up(engine: Engine) -> None:
    """Three a second are the account's: two of the function that lost its reservation, and one more."""
    limits = Limits(account_concurrency=1, requests_per_environment_s=3.0)
    functions = (Function(reserved=5), Function())
    pools = (Pool((0.0,)), Pool((0.0,), function=1))
    setup = Setup(pools, functions, limits, (Change(0.5, RESERVE, 0, -1),))
    arrivals_s = np.array([0.1, 0.2, 0.6, 0.7, 1.1])
    workload = Workload(arrivals_s, np.zeros(5, np.float32), np.array([0, 0, 1, 1, 1], np.uint16))
    run = simulate(workload, setup, engine)
    assert_equal(run, simulate_by_rules(workload, setup))
    assert run.outcomes.tolist() == [kernel.COLD, 0, kernel.COLD, kernel.INVOCATION_RATE, 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_level_that_is_raised_serves_after_its_delay(engine: Engine) -> None:
    """Until AWS has prepared it, a request starts cold; a level from before the trace serves at once."""
    limits = Limits(allocation_delay_s=90.0)
    pools = (Pool((1.0,), provisioned=1),)
    setup = Setup(pools, limits=limits, changes=(Change(10.0, PROVISION, 0, 2),))
    arrivals_s = np.array([2.0, 100.0, 100.5, 101.0, 101.5])
    workload = Workload(arrivals_s, np.full(5, 2.0, np.float32))
    run = simulate(workload, setup, engine)
    assert_equal(run, simulate_by_rules(workload, setup))
    assert run.outcomes.tolist() == [
        kernel.ON_PROVISIONED,
        kernel.ON_PROVISIONED,
        kernel.COLD | kernel.SPILLOVER,
        kernel.ON_PROVISIONED,
        kernel.COLD | kernel.SPILLOVER,
    ]


def test_one_environment_serves_calls_that_follow_each_other() -> None:
    """The first of them waits for the init phase, the others for nothing."""
    workload = Workload(np.array([0.0, 2.0, 4.0]), np.full(3, 0.5, np.float32))
    run = simulate(workload, Setup((Pool(inits_s=(1.0,)),)))
    assert run.outcomes.tolist() == [kernel.COLD, 0, 0]
    assert run.waits_s.tolist() == [1.0, 0.0, 0.0]


def test_arrivals_out_of_order_are_refused() -> None:
    """The message says what to do."""
    with pytest.raises(ValueError, match="Sort them"):
        simulate(Workload(np.array([1.0, 0.5]), np.zeros(2, np.float32)), Setup((Pool((1.0,)),)))


@pytest.mark.parametrize("engine", ENGINES)
def test_an_invocation_takes_at_most_40_bytes(engine: Engine) -> None:
    """Arrival, duration, version, outcome and waiting together, at the peak of a run."""
    count = 200_000
    setup = Setup((Pool((1.0,)),), limits=Limits(requests_per_environment_s=None))
    simulate(Workload(np.arange(3.0), np.ones(3, np.float32)), setup, engine)
    tracemalloc.start()
    try:
        workload = Workload(np.arange(count) * 0.01, np.full(count, 0.3, np.float32))
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        simulate(workload, setup, engine)
        peak_bytes = tracemalloc.get_traced_memory()[1] - before + 12 * count
    finally:
        tracemalloc.stop()
    assert peak_bytes / count <= 40
