"""Forecast of whether promises will be kept: simulates the waiting passes."""

import heapq
from collections.abc import Collection, Sequence

from coldframe.scheduling.jobs import Job
from coldframe.scheduling.passes import Pass

ROUNDING_S = 1e-9
"""Moments this close are equal: they are sums of floats in different orders."""


class Forecast:
    """The end of each pass of a plan, simulated on all workers.

    free_s: when each worker may begin. ends_s: end of each pass. late: passes that end after they are due,
    and their places in the plan.
    """

    def __init__(
        self,
        passes: Sequence[Pass],
        free_s: Sequence[float],
        caution: float,
        previous: "Forecast | None" = None,
        unchanged: int = 0,
    ) -> None:
        """caution: share of the model's margin that is added to the probable time of a pass, from 0 to 1.

        previous: a forecast with equal workers and caution, of a plan whose first passes are the same,
        `unchanged` of them. These are not simulated again.
        """
        self.free_s = free_s
        self.caution = caution
        self.ends_s: list[float] = previous.ends_s[:unchanged] if previous else []
        self._workers: list[list[float]] = (
            previous._workers[: unchanged + 1] if previous else [sorted(free_s)]
        )
        before = previous.late.items() if previous else ()
        self.late: dict[Pass, int] = {one: place for one, place in before if place < unchanged}
        self._play(passes, unchanged if previous else 0)

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
        """End of the last pass; of an empty plan, the moment when the last worker may begin."""
        return max(self.ends_s, default=max(self.free_s))

    def lateness_s(self, but: Collection[Pass] = ()) -> float:
        """Largest delay of a late pass, without the exempt jobs; 0 if no pass is late."""
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
