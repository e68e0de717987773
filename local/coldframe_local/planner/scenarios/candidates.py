"""One way to run a function, what it would cost and how it would do; and what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass

_FOR_P99 = 100  # by the nearest rank, the p99 of fewer is their maximum


@dataclass(frozen=True)
class Candidate:
    """A lever with its setting, as it did on the trace.

    setting: for people. overrides: parameters of the template, NAME=VALUE. notes: what else has to be done
    or known. p50_ms, p99_ms: of what was admitted.
    """

    lever: str
    setting: str
    memory_mb: int
    month_usd: float
    cold_share: float
    p50_ms: float
    p99_ms: float
    throttled_share: float
    overrides: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Goal:
    """Goal of a candidate. `throttled_share` is the largest accepted share of throttles."""

    p99_ms: float
    cold_share: float
    budget_usd: float | None = None
    throttled_share: float = 0.0001

    def missed(self, candidate: Candidate) -> str:
        """Missed parts of the goal, the worst for callers first; empty if it holds all of it."""
        if candidate.throttled_share > self.throttled_share:
            return f"{candidate.throttled_share:.2%} throttled"
        if candidate.p99_ms > self.p99_ms:
            return f"p99 is {candidate.p99_ms:,.0f} ms, {self.p99_ms:,.0f} are asked for"
        if candidate.cold_share > self.cold_share:
            return f"{candidate.cold_share:.2%} start cold, {self.cold_share:.2%} are allowed"
        if self.budget_usd is not None and candidate.month_usd > self.budget_usd:
            return f"{candidate.month_usd:,.2f} USD a month are over the budget of {self.budget_usd:,.2f}"
        return ""

    def holds(self, candidate: Candidate) -> bool:
        """Whether nothing is missed."""
        return not self.missed(candidate)

    def better(self, candidate: Candidate) -> tuple[bool, float, float, float]:
        """A key to sort by: what holds the goal by its price; the rest by throttles, cold starts and p99."""
        if self.holds(candidate):
            return False, candidate.month_usd, 0.0, 0.0
        return True, candidate.throttled_share, candidate.cold_share, candidate.p99_ms


def few_for_p99(count: int) -> str:
    """A note after the p99 of fewer than 100 values, which is the largest of them; else nothing."""
    return f" (the slowest of {count}: p99 needs 100)" if 0 < count < _FOR_P99 else ""
