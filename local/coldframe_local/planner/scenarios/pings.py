"""The warmer's pings among the requests of a workload, sent every five minutes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coldframe.warming.costs import PING_S
from coldframe.warming.policy import SLOT_S
from coldframe_local.planner.simulator.concurrency import peaks
from coldframe_local.planner.simulator.simulator import Workload

MOST_PINGED = 50  # functions/coldframe_functions/warmer keeps no more
_ROUND_S, _ROUND_GB = 0.8, 0.5  # docs/deploy.md assumes them of a round of the warmer itself
# One call of CloudWatch for one metric: https://aws.amazon.com/cloudwatch/pricing/, read 2026-11-22.
_CALL_USD = 0.01e-3

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pinged:
    """A workload with its pings. requests: which of its invocations are none."""

    workload: Workload
    requests: npt.NDArray[np.bool_]
    rounds: int

    @property
    def warmer_gb_s(self) -> float:
        """Usage of the warmer itself."""
        return self.rounds * _ROUND_S * _ROUND_GB

    @property
    def calls_usd(self) -> float:
        """Cost of the warmer's metrics."""
        return self.rounds * _CALL_USD


def steady(workload: Workload, environments: int, span_s: float) -> Counts:
    """Pings in each round, unless requests kept as many environments busy since the last round."""
    rounds = max(1, int(span_s // SLOT_S))
    busy = peaks(workload.arrivals_s, workload.durations_s, SLOT_S, span_s)[: rounds - 1]
    due = np.append(True, busy < environments)[:rounds]
    return np.asarray(due * environments, np.int64)


def with_pings(workload: Workload, counts: Counts, every_s: float = SLOT_S) -> Pinged:
    """The pings of each round, all at once, among the requests. every_s: from one round to the next."""
    moments_s = np.repeat(np.arange(len(counts)) * every_s, counts)
    arrivals_s = np.concatenate([workload.arrivals_s, moments_s])
    order = np.argsort(arrivals_s, kind="stable")
    durations_s = np.concatenate([workload.durations_s, np.full(len(moments_s), PING_S, np.float32)])
    return Pinged(
        Workload(arrivals_s[order], durations_s[order].astype(np.float32)),
        order < len(workload),
        len(counts),
    )
