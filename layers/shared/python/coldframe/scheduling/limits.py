"""Promises of a scheduler, and limits of its queue."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits that the operator of a server sets.

    workers: passes at a time.
    objective_s: a request without a deadline is promised an answer within this time from its arrival; if its
    own texts take longer than a third of it, within three times their time.
    bulk_patience_s: objective of a request that says it is not urgent.
    pass_objective_s: a pass that takes longer reduces the token budget.
    budget_tokens: initial token budget of a pass. max_budget_tokens: its upper limit.
    max_queue_rows, max_queue_bytes: limits for all requests that are admitted and not answered.
    """

    workers: int = 1
    objective_s: float = 2.0
    bulk_patience_s: float = 30.0
    pass_objective_s: float = 0.1
    budget_tokens: int = 512
    max_budget_tokens: int = 65_536
    max_queue_rows: int = 16_384
    max_queue_bytes: int = 67_108_864

    def patience_s(self, is_bulk: bool) -> float:
        """Longest wait of a request that states no time."""
        return self.bulk_patience_s if is_bulk else self.objective_s

    def __post_init__(self) -> None:
        """Raises ValueError for a limit that admits nothing."""
        for name, value in vars(self).items():
            if not value > 0:
                raise ValueError(f"Found {name}={value}, expected more than 0. Set it to a positive number.")
