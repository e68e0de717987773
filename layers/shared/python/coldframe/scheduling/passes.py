"""Rows that run together."""

from collections.abc import Iterable, Sequence

from coldframe.scheduling.jobs import Group, Job
from coldframe.scheduling.pass_times import PassModel

Entry = tuple[Job, int]
"""A row: its job, and its number there."""


class Pass:
    """Rows of one group that run together. due_s: the earliest of its jobs. Never changed once it is made."""

    __slots__ = ("due_s", "entries", "group", "model", "order", "shape_s", "tokens")

    def __init__(self, group: Group, model: PassModel, entries: Sequence[Entry]) -> None:
        self.group = group
        self.model = model
        self.entries = entries
        self.order = min(job.order for job, _ in entries)
        self.due_s = self.order[0]
        lengths = (job.work.lengths[row] for job, row in entries)
        self.tokens = group.length * len(entries) or sum(lengths)
        self.shape_s = model.shape_s(len(entries), self.tokens)

    @property
    def predicted_s(self) -> float:
        """What it will take, without a margin."""
        return self.shape_s * self.model.pace

    @property
    def is_alone(self) -> bool:
        """Whether nobody else's rows may join."""
        return self.entries[0][0].alone

    def jobs(self) -> Iterable[Job]:
        """Each once, in the order of their rows."""
        return dict.fromkeys(job for job, _ in self.entries)

    def with_entries(self, entries: Sequence[Entry]) -> "Pass":
        """The same pass with more rows, or with fewer."""
        return Pass(self.group, self.model, entries)
