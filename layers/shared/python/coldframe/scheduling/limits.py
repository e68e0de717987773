"""What a scheduler promises, and how much it holds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Chosen by whoever runs a server.

    workers: passes at a time.
    objective_s: a request that states no deadline is promised an answer within this time, from when it came;
    one whose own texts take longer than a third of it, within three times what they take.
    bulk_patience_s: the same for a request that says it is not urgent.
    pass_objective_s: a pass that takes longer makes the token budget smaller.
    budget_tokens: of a pass, to begin with. max_budget_tokens: it never grows past this.
    max_queue_rows, max_queue_bytes: of all requests that are admitted and not answered.
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
        """How long a request waits that states no time."""
        return self.bulk_patience_s if is_bulk else self.objective_s

    def __post_init__(self) -> None:
        """Raises ValueError for a limit that admits nothing."""
        for name, value in vars(self).items():
            if not value > 0:
                raise ValueError(f"Found {name}={value}, expected more than 0.")
