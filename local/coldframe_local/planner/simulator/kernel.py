"""The simulator's loop: one outcome for each invocation, in virtual time.

Which environment serves does not matter to outcomes, so counts, a stack of idle environments and a heap
of what comes due are the whole state. `coldframe.capacity.admission.decide` is the specification: the same
sums in the same order, so that both agree to the bit. The loop is one long function because a call costs
Python as much as three of its lines.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from coldframe.capacity.limits import SCALING_PERIOD
from coldframe_local.planner.simulator.kernel_state import (
    CRASHES,
    ON_DEMAND,
    PROVISIONED,
    PROVISIONED_ENDS,
    Account,
    new_account,
)
from coldframe_local.planner.simulator.numba_switch import jitable
from coldframe_local.planner.simulator.provisioning import change, come_due
from coldframe_local.planner.simulator.rules import Changes, Rules

# Bits of an outcome.
COLD, RESTORED, ON_PROVISIONED, SPILLOVER = 1, 2, 4, 8
RESERVED_CONCURRENCY, ACCOUNT_CONCURRENCY, INVOCATION_RATE, RESERVED_REQUEST_RATE = 16, 32, 48, 64
THROTTLED = 112  # any of these four

_NEVER = float("inf")
_SCALING_PERIOD_S = SCALING_PERIOD.value


def simulate(
    arrivals_s: Any,
    durations_s: Any,
    pools: Any,
    crashes: Any,
    rules: Rules,
    changes: Changes,
    outcomes: Any,
    waits_s: Any,
    started: Any,
    provisioned_init_s: Any,
) -> None:
    """Writes the outcome of each invocation, and the seconds for which it waited for its environment.

    arrivals_s: rising, at least 0. pools, crashes: empty, for a single pool, and for no crash; else of each
    invocation its pool, and whether its environment is lost at its end.
    started: of each function, the environments that were started. provisioned_init_s: of each pool, the
    seconds of init phases ahead of traffic.
    """
    account = new_account(len(rules.synchronous), len(rules.function_of), rules.most_due)
    due, kind, until, idle = account.due, account.kind, account.until, account.idle
    keep, dies, in_flight, claimed = account.keep, account.dies, account.in_flight, account.claimed
    reserved, pool_of, function_of = account.reserved, account.pool_of, rules.function_of
    below = account.below
    ready, spare, busy = account.ready, account.spare, account.busy
    concurrency, rated, provisioned = rules.account_concurrency, rules.rated, rules.provisioned
    changed, change_count = 0, len(changes.at_s)
    next_change = changes.at_s[0] if change_count else _NEVER
    # What is the same for each invocation of a single function is looked up once.
    several, shared, crashing = len(pools) > 0, len(rules.synchronous) > 1, len(crashes) > 0
    pool = function = 0
    # numba's `zip` knows no `strict`; the simulator has compared the lengths.
    for i, (now, duration_s) in enumerate(zip(arrivals_s, durations_s)):  # noqa: B905
        while next_change <= now:
            _pass_until(account, rules, next_change)
            change(
                account,
                rules,
                changes.kinds[changed],
                changes.of[changed],
                changes.values[changed],
                next_change,
            )
            changed += 1
            next_change = changes.at_s[changed] if changed < change_count else _NEVER
        while due[0][0] <= now:
            moment, environment = heappop(due)
            if kind[environment] == ON_DEMAND:  # `_becomes_idle`, without the call
                if several:
                    pool = pool_of[environment]
                    function = function_of[pool]
                in_flight[function] -= 1
                if shared and reserved[function] < 0:
                    claimed[0] -= 1
                expiry, dead = moment + keep[environment], dies[environment]
                until[environment] = expiry if expiry < dead else dead
                below[environment] = idle[pool]
                idle[pool] = environment
            else:
                come_due(account, rules, environment, moment)
        if several:
            pool = pools[i]
            function = function_of[pool]
        # The numbers are those of the rules at `coldframe.capacity.placement.place`.
        flying, limit = in_flight[function], reserved[function]
        if flying >= concurrency or 0 <= limit <= flying:  # 1
            outcomes[i] = RESERVED_CONCURRENCY if 0 <= limit <= flying else ACCOUNT_CONCURRENCY
            continue
        if rated and _rate_exceeded(account, rules, function, now):  # 2
            outcomes[i] = RESERVED_REQUEST_RATE if limit >= 0 else INVOCATION_RATE
            continue
        if rated and _growth_exceeded(account, rules, function, now):
            outcomes[i] = INVOCATION_RATE
            continue
        crash, outcome, environment = crashing and crashes[i] != 0, 0, -1
        if provisioned and ready[pool]:  # 3
            environment = ready[pool].pop()
            busy[pool] += 1
            spare[function] -= 1
            kind[environment] = PROVISIONED_ENDS if crash else PROVISIONED
            outcome = ON_PROVISIONED
        else:
            if shared or provisioned:  # 4
                used = claimed[0] if shared and limit < 0 else flying + spare[function]
                if used >= concurrency or 0 <= limit <= used:
                    outcomes[i] = RESERVED_CONCURRENCY if 0 <= limit <= used else ACCOUNT_CONCURRENCY
                    continue
            environment = idle[pool]
            while environment >= 0 and until[environment] <= now:  # expired since
                environment = below[environment]
            if environment >= 0:  # 5
                idle[pool] = below[environment]
            else:
                idle[pool] = -1
                environment, wait_s, outcome = _start(account, rules, function, pool, now)
                if environment < 0:  # 6
                    outcomes[i] = INVOCATION_RATE
                    continue
                waits_s[i] = wait_s
                # The rules' sum: it waits, and then it is served.
                now += wait_s
            if shared and limit < 0:
                claimed[0] += 1
            if crash:
                kind[environment] = CRASHES
            if provisioned and busy[pool] > 0:
                outcome |= SPILLOVER
        in_flight[function] = flying + 1
        heappush(due, (now + duration_s, environment))
        if outcome:
            outcomes[i] = outcome
        if rated:
            _count_request(account, rules, function, arrivals_s[i])
    for function in range(len(started)):
        started[function] = account.started[function]
    for pool in range(len(provisioned_init_s)):
        provisioned_init_s[pool] = account.provisioned_init_s[pool]


@jitable
def _pass_until(account: Account, rules: Rules, moment: float) -> None:
    """All that is due until this moment, the moment included."""
    while account.due[0][0] <= moment:
        now, environment = heappop(account.due)
        if account.kind[environment] == ON_DEMAND:
            _becomes_idle(account, rules, environment, now)
        else:
            come_due(account, rules, environment, now)


@jitable
def _becomes_idle(account: Account, rules: Rules, environment: int, now: float) -> None:
    pool = account.pool_of[environment]
    function = rules.function_of[pool]
    account.in_flight[function] -= 1
    if account.reserved[function] < 0:
        account.claimed[0] -= 1
    account.until[environment] = min(now + account.keep[environment], account.dies[environment])
    account.below[environment] = account.idle[pool]
    account.idle[pool] = environment


@jitable
def _start(account: Account, rules: Rules, function: int, pool: int, now: float) -> tuple[int, float, int]:
    """A new environment, the seconds until it serves, and bits of the outcome; -1 over the scaling rate."""
    if rules.scaling_burst >= 0:
        passed_s = now - account.scaled_at[function]
        scaled = max(0.0, account.scaled[function] - passed_s * rules.scaling_per_s) + 1
        if scaled > rules.scaling_burst:
            return -1, 0.0, 0
        account.scaled[function], account.scaled_at[function] = scaled, now
    number = account.started[function]
    account.started[function] = number + 1
    outcome, draws_s = COLD, rules.inits_s
    if account.crashed[pool] > 0:
        account.crashed[pool] -= 1
    elif rules.snapstart[pool]:
        outcome, draws_s = COLD | RESTORED, rules.restores_s
    environment = len(account.kind)
    account.kind.append(ON_DEMAND)
    account.pool_of.append(pool)
    account.until.append(0.0)
    account.keep.append(rules.keeps_s[function, number % rules.keeps_s.shape[1]])
    account.dies.append(now + rules.max_age_s)
    account.below.append(-1)
    return environment, draws_s[pool, number % draws_s.shape[1]], outcome


@jitable
def _rate_exceeded(account: Account, rules: Rules, function: int, now: float) -> bool:
    second, per_environment_s = int(now), rules.requests_per_environment_s
    if per_environment_s < 0.0 or not rules.synchronous[function]:
        return False
    if account.reserved[function] >= 0:
        requests = account.requests[function] if account.seconds[function] == second else 0
        return requests >= account.reserved[function] * per_environment_s
    requests = account.account_requests[0] if account.account_second[0] == second else 0
    return requests >= rules.account_concurrency * per_environment_s


@jitable
def _growth_exceeded(account: Account, rules: Rules, function: int, now: float) -> bool:
    if rules.request_growth < 0 or not rules.synchronous[function]:
        return False
    requests = account.requests[function] if account.seconds[function] == int(now) else 0
    if requests < account.grown_to[function]:
        return False
    return _growth(account, rules, function, now) + 1 > rules.request_growth


@jitable
def _growth(account: Account, rules: Rules, function: int, now: float) -> float:
    """Growth that still counts."""
    passed_s = now - account.grown_at[function]
    return max(0.0, account.grown[function] - passed_s * (rules.request_growth / _SCALING_PERIOD_S))


@jitable
def _count_request(account: Account, rules: Rules, function: int, now: float) -> None:
    if not rules.synchronous[function]:
        return
    second = int(now)
    if account.seconds[function] != second:
        account.seconds[function], account.requests[function] = second, 0
    account.requests[function] += 1
    if account.requests[function] > account.grown_to[function]:
        account.grown_to[function] = account.requests[function]
        if rules.request_growth >= 0:
            account.grown[function] = _growth(account, rules, function, now) + 1
            account.grown_at[function] = now
    if account.reserved[function] < 0:
        if account.account_second[0] != second:
            account.account_second[0], account.account_requests[0] = second, 0
        account.account_requests[0] += 1
