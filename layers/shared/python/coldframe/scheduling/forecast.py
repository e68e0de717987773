"""Whether promises will be kept: passes played forward."""

import heapq
from collections.abc import Collection, Sequence

from coldframe.scheduling.jobs import Job
from coldframe.scheduling.passes import Pass

ROUNDING_S = 1e-9
"""Moments that are this close are the same: they are sums of floats, made in another order."""


class Forecast:
    """When each pass of a plan will have ended, played forward on as many workers as there are.

    free_s: when each worker may begin. ends_s: of each pass. late: those that end after they are due, and
    where in the plan they are.
    """

    def __init__(
        self,
        passes: Sequence[Pass],
        free_s: Sequence[float],
        caution: float,
        known: "Forecast | None" = None,
        unchanged: int = 0,
    ) -> None:
        """caution: how much of its model's margin is added to what a pass will probably take, from 0 to 1.

        known: a forecast with the same workers and caution, of a plan that begins with the same passes, as
        many as `unchanged`. These are not played again.
        """
        self.free_s = free_s
        self.caution = caution
        self.ends_s: list[float] = known.ends_s[:unchanged] if known else []
        self._workers: list[list[float]] = known._workers[: unchanged + 1] if known else [sorted(free_s)]
        before = known.late.items() if known else ()
        self.late: dict[Pass, int] = {one: place for one, place in before if place < unchanged}
        self._play(passes, unchanged if known else 0)

    def _play(self, passes: Sequence[Pass], start: int) -> None:
        model, factor = None, 0.0
        workers = self._workers[start]
        for place in range(start, len(passes)):
            one = passes[place]
            if one.model is not model:
                model = one.model
                factor = model.pace * (1 + self.caution * (model.margin - 1))
            workers = workers.copy()
            end_s = workers[0] + one.shape_s * factor
            heapq.heapreplace(workers, end_s)
            self._workers.append(workers)
            self.ends_s.append(end_s)
            if end_s > one.due_s + ROUNDING_S:
                self.late[one] = place

    def end_s(self) -> float:
        """When all of it will have ended; where it is empty, when the last worker may begin."""
        return max(self.ends_s, default=max(self.free_s))

    def lateness_s(self, but: Collection[Pass] = ()) -> float:
        """By how much the latest pass is too late, but for some; 0 where none is."""
        return max(
            (self.ends_s[place] - one.due_s for one, place in self.late.items() if one not in but),
            default=0.0,
        )

    def late_jobs(self) -> set[Job]:
        """Jobs that end after they are due."""
        return {
            job
            for one, place in self.late.items()
            for job in one.jobs()
            if self.ends_s[place] > job.due_s + ROUNDING_S
        }
