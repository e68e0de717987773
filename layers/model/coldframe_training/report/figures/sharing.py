"""Parts that answer for `auto`: the estimator alone, or the estimator and a head together."""

from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from coldframe_training.report.figures.evaluation import Answers
from coldframe_training.report.figures.intervals import Interval, rounded, wilson


class Agreement(msgspec.Struct, frozen=True):
    """How often a head says what the estimator says, where the estimator answers alone."""

    head: str
    agrees: Interval


class EstimatorShare(msgspec.Struct, frozen=True):
    """Rows that the estimator answers alone, and the others.

    promised: the estimator's mean probability where it answers alone; None where it never does.
    agreement: should be near what is promised, head by head; far below it, the estimator is too sure.
    """

    alone: int
    share: Interval
    promised: float | None
    accuracy_alone: Interval | None
    accuracy_together: Interval | None
    agreement: list[Agreement]


def estimator_share(
    alone: NDArray[np.bool_], auto: Answers, heads: Mapping[str, Answers], right: NDArray[np.bool_]
) -> EstimatorShare:
    """alone, right: of the answers of `auto`, (n,). heads: answers without the estimator, by name."""
    count = int(alone.sum())
    share = wilson(count, len(alone))
    assert share is not None  # noqa: S101 - an evaluation has rows
    return EstimatorShare(
        count,
        share,
        rounded(auto.probability[alone].mean()) if count else None,
        wilson(int(right[alone].sum()), count),
        wilson(int(right[~alone].sum()), len(alone) - count),
        [
            Agreement(name, agrees)
            for name, head in heads.items()
            if (agrees := wilson(int((head.said == auto.said)[alone].sum()), count))
        ],
    )
