"""State of an account in the kernel: every value by function, by pool, or by environment.

A pool is one version of one function. Lists, because both Python and numba are quick with them.
"""

from __future__ import annotations

from typing import NamedTuple

from coldframe_local.planner.simulator.heap import Due, new_heap
from coldframe_local.planner.simulator.numba_switch import jitable

# What becomes of an environment when its next moment comes.
ON_DEMAND = 0  # its invocation ends, and it is kept idle
CRASHES = 1  # on demand: its invocation ends, and it with that
OUTDATED = 2  # on demand: the same, because its code is of before
PROVISIONED = 3  # its invocation ends, and it is ready
PROVISIONED_ENDS = 4  # its invocation ends, and another one replaces it
LOADING = 5  # provisioned: its init phase ends
GONE = 6  # nothing: it was stopped before


class Account(NamedTuple):
    """The state of a simulation.

    reserved: -1 when nothing is reserved. spare: provisioned concurrency of all versions that is idle or
    still loading, which nobody else may use. claimed: concurrency that all functions take from the account.
    account_second, account_requests: requests of functions without a reservation in the latest second.
    idle: the environment that became idle last, -1 for none; below: the one that did so before it.
    until, dies: when an environment is stopped if it stays idle, and at the latest.
    due: (moment, environment) of all that is in flight or loads, a heap.
    """

    # By function.
    reserved: list[int]
    in_flight: list[int]
    spare: list[int]
    seconds: list[int]
    requests: list[int]
    grown_to: list[int]
    grown: list[float]
    grown_at: list[float]
    scaled: list[float]
    scaled_at: list[float]
    allocated: list[float]
    allocated_at: list[float]
    started: list[int]
    # By pool.
    target: list[int]
    ready: list[list[int]]
    busy: list[int]
    loading: list[int]
    crashed: list[int]
    provisioned_init_s: list[float]
    idle: list[int]
    # By environment.
    kind: list[int]
    pool_of: list[int]
    until: list[float]
    keep: list[float]
    dies: list[float]
    below: list[int]
    # Of the account.
    claimed: list[int]
    account_second: list[int]
    account_requests: list[int]
    due: Due


@jitable
def new_account(functions: int, pools: int, most_due: int) -> Account:
    """Nothing has been started, and nothing is reserved. most_due: the most that can be due at a time."""
    return Account(
        [-1] * functions,
        [0] * functions,
        [0] * functions,
        [-1] * functions,
        [0] * functions,
        [0] * functions,
        [0.0] * functions,
        [0.0] * functions,
        [0.0] * functions,
        [0.0] * functions,
        [0.0] * functions,
        [0.0] * functions,
        [0] * functions,
        [0] * pools,
        [[0 for _ in range(0)] for _ in range(pools)],
        [0] * pools,
        [0] * pools,
        [0] * pools,
        [0.0] * pools,
        [-1] * pools,
        [0 for _ in range(0)],
        [0 for _ in range(0)],
        [0.0 for _ in range(0)],
        [0.0 for _ in range(0)],
        [0.0 for _ in range(0)],
        [0 for _ in range(0)],
        [0],
        [-1],
        [0],
        new_heap(most_due),
    )
