"""The kernel's rarer events: provisioned environments, configuration changes, environments that are lost.

Each function follows one of `coldframe.capacity`; a differential test holds them to it.
"""

from __future__ import annotations

from heapq import heappush

from coldframe_local.planner.simulator.kernel_state import (
    CRASHES,
    GONE,
    LOADING,
    ON_DEMAND,
    OUTDATED,
    PROVISIONED,
    PROVISIONED_ENDS,
    Account,
)
from coldframe_local.planner.simulator.numba_switch import jitable
from coldframe_local.planner.simulator.rules import Rules

# Kinds of configuration changes. PROVISIONED_BEFORE: a level that was set before the first invocation.
PROVISION, RESERVE, RECYCLE, PROVISIONED_BEFORE = 0, 1, 2, 3


@jitable
def change(account: Account, rules: Rules, kind: int, of: int, value: int, now: float) -> None:
    """One configuration change. of: the pool for a level, else the function; value: the target, or what is
    reserved (-1 for nothing)."""
    if kind in (PROVISION, PROVISIONED_BEFORE):
        function = rules.function_of[of]
        _set_aside(account, function, of, value)
        adjust(account, rules, of, now, rules.allocation_delay_s if kind == PROVISION else 0.0)
    elif kind == RESERVE:
        account.claimed[0] -= _claim(account, of)
        account.reserved[of] = value
        account.claimed[0] += _claim(account, of)
        _count_requests(account, now)
    else:
        _recycle(account, rules, of, now)


@jitable
def come_due(account: Account, rules: Rules, environment: int, now: float) -> None:
    """An init phase, or an invocation whose environment does not just become idle, ends."""
    kind, pool = account.kind[environment], account.pool_of[environment]
    function = rules.function_of[pool]
    if kind == LOADING:
        account.kind[environment] = PROVISIONED  # or `_stop_loading` would take it for one that loads
        account.loading[pool] -= 1
        account.ready[pool].append(environment)
        account.provisioned_init_s[pool] += account.keep[environment]
    elif kind in (CRASHES, OUTDATED):
        account.in_flight[function] -= 1
        if account.reserved[function] < 0:
            account.claimed[0] -= 1
        if kind == CRASHES and rules.snapstart[pool]:
            account.crashed[pool] += 1
    elif kind in (PROVISIONED, PROVISIONED_ENDS):
        _provisioned_ends(account, rules, environment, now)


@jitable
def adjust(account: Account, rules: Rules, pool: int, now: float, delay_s: float) -> None:
    """Starts what is missing of a pool's provisioned environments, or stops what is too much.

    delay_s: what starts begins so much later.
    """
    surplus = _environments(account, pool) - account.target[pool]
    if surplus > 0:
        while surplus > 0 and account.ready[pool]:
            account.ready[pool].pop(0)
            surplus -= 1
        _stop_loading(account, pool, surplus)
    elif surplus < 0:
        _allocate(account, rules, pool, -surplus, now, delay_s)


@jitable
def _environments(account: Account, pool: int) -> int:
    return len(account.ready[pool]) + account.busy[pool] + account.loading[pool]


@jitable
def _provisioned_ends(account: Account, rules: Rules, environment: int, now: float) -> None:
    pool = account.pool_of[environment]
    function = rules.function_of[pool]
    surplus = _environments(account, pool) - account.target[pool]
    account.busy[pool] -= 1
    account.in_flight[function] -= 1
    if account.busy[pool] < account.target[pool]:
        account.spare[function] += 1
    elif account.reserved[function] < 0:
        account.claimed[0] -= 1
    if account.kind[environment] == PROVISIONED and surplus <= 0:
        account.ready[pool].append(environment)
    else:
        adjust(account, rules, pool, now, 0.0)


@jitable
def _set_aside(account: Account, function: int, pool: int, target: int) -> None:
    before = max(0, account.target[pool] - account.busy[pool])
    after = max(0, target - account.busy[pool])
    account.target[pool] = target
    account.spare[function] += after - before
    if account.reserved[function] < 0:
        account.claimed[0] += after - before


@jitable
def _allocate(account: Account, rules: Rules, pool: int, count: int, now: float, delay_s: float) -> None:
    function, per_s = rules.function_of[pool], rules.allocation_per_s
    allocated = max(0.0, account.allocated[function] - (now - account.allocated_at[function]) * per_s)
    for nth in range(1, count + 1):
        begins_at = now + delay_s
        if per_s > 0.0:
            begins_at += max(0.0, allocated + nth - rules.allocation_burst) / per_s
        init_s = rules.inits_s[pool, account.started[function] % rules.inits_s.shape[1]]
        account.started[function] += 1
        heappush(account.due, (begins_at + init_s, len(account.kind)))
        account.kind.append(LOADING)
        account.pool_of.append(pool)
        account.until.append(0.0)
        account.keep.append(init_s)  # of a provisioned environment: its init phase, for the bill
        account.dies.append(0.0)
        account.below.append(-1)
    account.allocated[function] = allocated + count
    account.allocated_at[function] = now
    account.loading[pool] += count


@jitable
def _stop_loading(account: Account, pool: int, surplus: int) -> None:
    """Youngest first."""
    youngest = len(account.kind)
    while surplus > 0 and account.loading[pool] > 0:
        youngest -= 1
        if account.kind[youngest] == LOADING and account.pool_of[youngest] == pool:
            account.kind[youngest] = GONE
            account.loading[pool] -= 1
            surplus -= 1


@jitable
def _recycle(account: Account, rules: Rules, function: int, now: float) -> None:
    for environment in range(len(account.kind)):  # environments that have ended are skipped
        if rules.function_of[account.pool_of[environment]] != function:
            continue
        kind = account.kind[environment]
        if kind == ON_DEMAND:
            account.kind[environment] = OUTDATED
        elif kind == PROVISIONED:
            account.kind[environment] = PROVISIONED_ENDS
        elif kind == LOADING:
            account.kind[environment] = GONE
    for pool in range(len(account.target)):
        if rules.function_of[pool] == function:
            account.idle[pool] = -1
            account.ready[pool].clear()
            account.loading[pool] = 0
    for pool in range(len(account.target)):
        if rules.function_of[pool] == function:
            adjust(account, rules, pool, now, 0.0)


@jitable
def _claim(account: Account, function: int) -> int:
    reserved = account.reserved[function]
    return reserved if reserved >= 0 else account.in_flight[function] + account.spare[function]


@jitable
def _count_requests(account: Account, now: float) -> None:
    """Requests of this second that functions without a reservation have taken from the account's rate."""
    second, total = int(now), 0
    for function in range(len(account.reserved)):
        if account.reserved[function] < 0 and account.seconds[function] == second:
            total += account.requests[function]
    account.account_second[0], account.account_requests[0] = second, total
