"""Statistics of a scheduler: its work so far, and its queue."""

from dataclasses import dataclass, fields, replace

from coldframe.scheduling.jobs import Job, Outcome, Refusal

_STATE = frozenset(
    (
        "queued_jobs",
        "queued_rows",
        "queued_bytes",
        "running_passes",
        "budget_tokens",
        "expected_wait_s",
    )
)
"""Fields about one moment; all others are counters."""


@dataclass
class Stats:
    """Counters from the start, and the state at one moment.

    queued_*: jobs admitted and not ended. expected_wait_s: time until all waiting work would be done.
    refused, done, missed, cancelled, failed: jobs. late: done jobs that ended after the promised moment.
    rushed: offers that were not admitted, whose request is answered without rows. cut: jobs admitted without
    later rows.
    predicted_s, actual_s: sums over all passes.
    queue_wait_s: sum over all jobs, from admission to their first pass.
    """

    queued_jobs: int = 0
    queued_rows: int = 0
    queued_bytes: int = 0
    running_passes: int = 0
    budget_tokens: int = 0
    expected_wait_s: float = 0.0
    passes: int = 0
    rows: int = 0
    tokens: int = 0
    refused: int = 0
    rushed: int = 0
    cut: int = 0
    done: int = 0
    missed: int = 0
    late: int = 0
    cancelled: int = 0
    failed: int = 0
    predicted_s: float = 0.0
    actual_s: float = 0.0
    queue_wait_s: float = 0.0

    def count_pass(self, rows: int, tokens: int, predicted_s: float, actual_s: float) -> None:
        """Adds a pass that had results."""
        self.passes += 1
        self.rows += rows
        self.tokens += tokens
        self.predicted_s += predicted_s
        self.actual_s += actual_s

    def count_offer(self, answer: Job | Refusal, may_rush: bool) -> None:
        """Adds the answer to an offer. may_rush: its request is answered without rows, if need be."""
        if isinstance(answer, Job):
            self.cut += answer.is_cut
        elif may_rush:
            self.rushed += 1
        else:
            self.refused += 1

    def count_outcome(self, outcome: Outcome) -> None:
        """Adds a job that has ended."""
        name = outcome.name.lower()
        setattr(self, name, getattr(self, name) + 1)

    def at(
        self,
        queued_jobs: int,
        queued_rows: int,
        queued_bytes: int,
        running_passes: int,
        budget_tokens: int,
        expected_wait_s: float,
    ) -> "Stats":
        """A copy, with the current state."""
        return replace(
            self,
            queued_jobs=queued_jobs,
            queued_rows=queued_rows,
            queued_bytes=queued_bytes,
            running_passes=running_passes,
            budget_tokens=budget_tokens,
            expected_wait_s=expected_wait_s,
        )

    def after(self, earlier: "Stats") -> "Stats":
        """A copy whose counters go on from those of an earlier scheduler."""
        counters = (field.name for field in fields(self) if field.name not in _STATE)
        return replace(self, **{name: getattr(self, name) + getattr(earlier, name) for name in counters})
