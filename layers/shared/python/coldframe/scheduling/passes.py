"""A pass: rows that run together."""

from collections.abc import Iterable, Sequence

from coldframe.scheduling.jobs import Group, Job, Order
from coldframe.scheduling.pass_times import PassModel

Entry = tuple[Job, int]
"""A row: its job, and its number there."""


class Pass:
    """Rows of one group that run together. due_s: earliest due time of its jobs. Never changed after
    creation.
    """

    __slots__ = ("due_s", "entries", "group", "model", "order", "shape_s", "tokens")

    def __init__(
        self, group: Group, model: PassModel, entries: Sequence[Entry], order: Order | None = None
    ) -> None:
        """order: of the most urgent of these jobs, if the caller knows it."""
        self.group = group
        self.model = model
        self.entries = entries
        self.order = order or min(job.order for job, _ in entries)
        self.due_s = self.order[0]
        self.tokens = group.length * len(entries) or sum(job.work.lengths[row] for job, row in entries)
        self.shape_s = model.shape_s(len(entries), self.tokens)

    @property
    def predicted_s(self) -> float:
        """Its probable time, without a margin."""
        return self.shape_s * self.model.pace

    @property
    def is_alone(self) -> bool:
        """Whether other requests' rows may not join."""
        return self.entries[0][0].alone

    def jobs(self) -> Iterable[Job]:
        """Its jobs without repetitions, in the order of their rows."""
        return dict.fromkeys(job for job, _ in self.entries)

    def with_more(self, entries: Sequence[Entry]) -> "Pass":
        """The same pass with more rows."""
        order = min(self.order, min(job.order for job, _ in entries))
        return Pass(self.group, self.model, [*self.entries, *entries], order)

    def with_entries(self, entries: Sequence[Entry]) -> "Pass":
        """The same pass with fewer rows."""
        return Pass(self.group, self.model, entries)
