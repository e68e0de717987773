"""Requests that may wait, several in one invocation: as an SQS event source gathers them, by size and window.

Source: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html, read 2026-11-21: a batch is
invoked when it is full, or when the window is over that its first request began.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from coldframe_local.planner.simulator.simulator import Run, Workload


@dataclass(frozen=True)
class Batched:
    """A workload of batches. of: the batch of each request; gathered_s: for how long each request waited in
    it before it was invoked."""

    workload: Workload
    of: npt.NDArray[np.int64]
    gathered_s: npt.NDArray[np.float64]

    def by_request(self, run: Run) -> tuple[Run, Workload]:
        """The run of the batches as their requests saw it: each waited until it was invoked, too, and worked
        for as long as its whole batch."""
        waits_s = self.gathered_s + run.waits_s[self.of]
        mine = replace(run, outcomes=run.outcomes[self.of], waits_s=waits_s.astype(np.float32))
        batches = self.workload
        return mine, Workload(batches.arrivals_s[self.of] - self.gathered_s, batches.durations_s[self.of])


def batched(workload: Workload, size: int, window_s: float, further_s: float) -> Batched:
    """The requests in batches. further_s: what each request but the first one adds to a batch's duration."""
    arrivals_s = workload.arrivals_s
    # Where the batch would end that begins with each request.
    closes = np.searchsorted(arrivals_s, arrivals_s + window_s, side="right")
    ends = np.minimum(closes, np.arange(len(arrivals_s)) + size).tolist()
    firsts, first = [], 0
    while first < len(ends):
        firsts.append(first)
        first = ends[first]
    starts = np.array(firsts, np.int64)
    counts = np.diff(np.append(starts, len(arrivals_s)))
    full = counts == size
    invoked_s = np.where(full, arrivals_s[starts + counts - 1], arrivals_s[starts] + window_s)
    of = np.repeat(np.arange(len(starts)), counts)
    durations_s = (workload.durations_s[starts] + (counts - 1) * further_s).astype(np.float32)
    return Batched(Workload(invoked_s, durations_s), of, invoked_s[of] - arrivals_s)
