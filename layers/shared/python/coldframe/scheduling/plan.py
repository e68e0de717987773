"""The passes that wait, in the order they will run, and whether they keep what was promised.

Passes are ordered by the earliest due of their rows. A plan is the proof of its promises: it is played
forward, pass by pass, on as many workers as there are.
"""

import heapq
from bisect import insort
from collections.abc import Iterable, Iterator, Sequence

from coldframe.scheduling.jobs import Group, Job
from coldframe.scheduling.pass_times import PassModel

ROUNDING_S = 1e-9
"""Moments that are this close are the same: they are sums of floats, made in another order."""

Entry = tuple[Job, int]
"""A row: its job, and its number there."""


class Pass:
    """Rows of one group that run together.

    due_s: the earliest of its jobs. was_late: it came too late already when the plan was last played.
    Never changed once it is in a plan: another one takes its place.
    """

    __slots__ = ("due_s", "entries", "group", "model", "order", "shape_s", "tokens", "was_late")

    def __init__(
        self, group: Group, model: PassModel, entries: Sequence[Entry], was_late: bool = False
    ) -> None:
        self.group = group
        self.model = model
        self.entries = entries
        self.order = min(job.order for job, _ in entries)
        self.due_s = self.order[0]
        lengths = (job.work.lengths[row] for job, row in entries)
        self.tokens = group.length * len(entries) or sum(lengths)
        self.shape_s = model.shape_s(len(entries), self.tokens)
        self.was_late = was_late

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
        return Pass(self.group, self.model, entries, self.was_late)


class Plan:
    """Passes in the order they will run."""

    def __init__(self, passes: Iterable[Pass] = ()) -> None:
        self.passes = list(passes)

    def __bool__(self) -> bool:
        return bool(self.passes)

    def copy(self) -> "Plan":
        """Another plan of the same passes."""
        return Plan(self.passes)

    def add(self, new: Pass) -> None:
        """Puts a pass where its due belongs."""
        insort(self.passes, new, key=_order)

    def take_first(self) -> Pass:
        """The pass to run now, no longer planned."""
        return self.passes.pop(0)

    def place(
        self, job: Job, rows: Sequence[int], group: Group, model: PassModel, size: int, join: bool
    ) -> None:
        """Plans rows of one group: in passes with room if they may `join`, then in new ones of `size`."""
        entries = [(job, row) for row in rows]
        if join and size > 1 and not job.alone:
            entries = self._join(entries, group, size)
        for start in range(0, len(entries), size):
            self.add(Pass(group, model, entries[start : start + size]))

    def _join(self, entries: list[Entry], group: Group, size: int) -> list[Entry]:
        """Puts rows where there is room; those that are left over."""
        is_sorted = True
        for index in range(
            len(self.passes) - 1, -1, -1
        ):  # the last ones first: it delays fewer of the others
            one = self.passes[index]
            room = size - len(one.entries) if one.group == group and not one.is_alone else 0
            if room > 0:
                joined = one.with_entries([*one.entries, *entries[:room]])
                is_sorted = is_sorted and joined.order == one.order
                self.passes[index], entries = joined, entries[room:]
                if not entries:
                    break
        if not is_sorted:  # whoever joined is more urgent
            self.passes.sort(key=_order)
        return entries

    def fill(self, first: Pass, size: int) -> Pass:
        """`first` with rows of later passes of its group, up to `size`; what is left of these stays."""
        entries, passes = list(first.entries), []
        for one in self.passes:
            room = size - len(entries) if one.group == first.group and not one.is_alone else 0
            if room > 0:
                entries += one.entries[:room]
                if len(one.entries) > room:
                    passes.append(one.with_entries(one.entries[room:]))
            else:
                passes.append(one)
        passes.sort(key=_order)
        self.passes = passes
        return first.with_entries(entries)

    def drop(self, job: Job) -> int:
        """Takes a job's rows out; says how many there were."""
        dropped, passes = 0, []
        for one in self.passes:
            left = [entry for entry in one.entries if entry[0] is not job]
            dropped += len(one.entries) - len(left)
            if len(left) == len(one.entries):
                passes.append(one)
            elif left:
                passes.append(one.with_entries(left))
        passes.sort(key=_order)
        self.passes = passes
        return dropped

    def ends_s(self, free_s: Sequence[float], caution: float) -> Iterator[tuple[Pass, float]]:
        """Each pass with the moment it will have ended. free_s: when each worker may begin.

        caution: how much of its model's margin is added to what a pass will probably take, from 0 to 1.
        """
        workers = sorted(free_s)
        for one in self.passes:
            model = one.model
            end_s = workers[0] + one.shape_s * model.pace * (1 + caution * (model.margin - 1))
            heapq.heapreplace(workers, end_s)
            yield one, end_s

    def keeps_promises(self, free_s: Sequence[float], caution: float) -> bool:
        """Whether every pass will have ended when it is due."""
        return all(end_s <= one.due_s + ROUNDING_S for one, end_s in self.ends_s(free_s, caution))

    def mark_late(self, free_s: Sequence[float], caution: float) -> None:
        """Marks passes that will come too late: they are no reason to refuse anybody."""
        for one, end_s in self.ends_s(free_s, caution):
            one.was_late = end_s > one.due_s + ROUNDING_S

    def lateness_s(self, free_s: Sequence[float], caution: float) -> float:
        """By how much the plan breaks a promise that was kept when passes were last marked; else 0."""
        lateness_s = 0.0
        for one, end_s in self.ends_s(free_s, caution):
            if not one.was_late and end_s - one.due_s > lateness_s:
                lateness_s = end_s - one.due_s
        return lateness_s if lateness_s > ROUNDING_S else 0.0


def _order(one: Pass) -> tuple[float, bool, int]:
    return one.order
