"""Evidence about two arms from counts: pairs of answers, split traffic, shares of answers, and means.

Each count only grows, so it is added up in any order by environments that know nothing of each other.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from coldframe.betting import Interval, Outcomes

_USUAL_ACCURACIES = (0.5, 0.75, 0.93)  # at one of these, a split's bets waste little
_PRIOR_ANSWERS = 100.0  # with which the test of shares begins, so that tiny samples alarm nobody

PRIOR_LABELS = 2.0
"""Labels with which the test of their shares begins: they are few, and those of one arm alone show early."""

_GAINS = Interval(-1.0, 1.0)


class PairCounts(NamedTuple):
    """Labelled texts that both arms answered.

    gained: only the candidate is right. lost: only the baseline is right. ties: both are right, or both are
    wrong.
    """

    gained: int = 0
    lost: int = 0
    ties: int = 0


class SplitCounts(NamedTuple):
    """Labelled answers of two arms while the shares of traffic were constant.

    share: of the candidate among the traffic of both, above 0 and below 1. The labels' choice must not depend
    on the arm. right, wrong: answers of the candidate; baseline_right, baseline_wrong: of the baseline.
    """

    share: float
    right: int = 0
    wrong: int = 0
    baseline_right: int = 0
    baseline_wrong: int = 0


def share_of(hits: float, others: float) -> Outcomes:
    """Outcomes of 0 or 1, whose mean is a share.

    For bounded values, `hits` is the sum of values between 0 and 1, and `others` the sum of their distances
    from 1: the capital is then smaller than with all values, so it is still valid.
    """
    return Outcomes(((((1.0, hits), (0.0, others)),),))


def gain_in_pairs(pairs: PairCounts) -> Outcomes:
    """Outcomes whose mean is the candidate's accuracy minus the baseline's, over the same texts.

    Ties change nothing while the question is whether the gain is above 0: then only discordant pairs count.
    """
    return Outcomes(((((1.0, pairs.gained), (-1.0, pairs.lost), (0.0, pairs.ties)),),), _GAINS)


def gain_in_split(stages: Sequence[SplitCounts]) -> Outcomes:
    """Outcomes whose mean is the candidate's accuracy minus the baseline's, over split traffic.

    stages: one item for each time with constant shares.

    An answer is weighted by the inverse of its arm's share. Both arms may become better or worse together
    with the texts. A usual accuracy is subtracted first, which changes no mean and narrows the interval.
    """
    games = tuple(tuple(_weighted(stage, usual) for stage in stages) for usual in _USUAL_ACCURACIES)
    return Outcomes(games, _GAINS)


def _weighted(stage: SplitCounts, usual: float) -> tuple[tuple[float, float], ...]:
    """Values of a stage's answers, with their counts."""
    rest = 1.0 - stage.share
    return (
        ((1.0 - usual) / stage.share, stage.right),
        (-usual / stage.share, stage.wrong),
        (-(1.0 - usual) / rest, stage.baseline_right),
        (usual / rest, stage.baseline_wrong),
    )


def log_ratio_mismatch(
    counts: Sequence[int], shares: Sequence[float], prior_answers: float = _PRIOR_ANSWERS
) -> float:
    """Natural logarithm of the evidence that answers do not follow the arms' shares, valid at every look.

    counts: answers by arm. shares: of the arms; their sum is 1. prior_answers: number that the test begins
    with; fewer show a gross mismatch earlier. Few subjects with many answers each, lost counts and a wrong
    assignment all show here.
    Source: Lindon & Malek 2022, arXiv 2011.03567, with a Dirichlet prior around the shares.
    """
    if any(count and not share for count, share in zip(counts, shares, strict=True)):
        return math.inf
    arms = [(count, share) for count, share in zip(counts, shares, strict=True) if share]
    value = math.lgamma(prior_answers) - math.lgamma(prior_answers + sum(counts))
    for count, share in arms:
        prior = prior_answers * share
        value += math.lgamma(prior + count) - math.lgamma(prior) - count * math.log(share)
    return value


def log_label_mismatch(stages: Sequence[SplitCounts]) -> float:
    """Natural logarithm of the evidence that labels do not follow the arms' shares, valid at every look.

    A label counts for the stage of its answer, however late it comes. The stages are one game: their evidence
    is multiplied.
    """
    return sum(
        log_ratio_mismatch(
            (stage.baseline_right + stage.baseline_wrong, stage.right + stage.wrong),
            (1.0 - stage.share, stage.share),
            PRIOR_LABELS,
        )
        for stage in stages
    )


class Moments(NamedTuple):
    """Number, sum and sum of squares of values: milliseconds, for instance."""

    number: int = 0
    total: float = 0.0
    squares: float = 0.0


def mean_interval(moments: Moments, alpha: float, best_at: int = 1000) -> Interval | None:
    """Interval of a mean without bounds, valid at every look but the first few; None below two values.

    best_at: number of values for which the interval is narrowest.
    Source: Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas 2024, arXiv 2103.06476: an asymptotic confidence
    sequence. Its error is about alpha where the first looks have tens of values.
    """
    number = moments.number
    if number < 2:
        return None
    mean = moments.total / number
    variance = max(0.0, moments.squares / number - mean**2)
    chance = -2 * math.log(alpha)
    width = (chance + math.log(chance + 1)) / best_at  # rho squared
    spread = number * width + 1
    margin = math.sqrt(variance * 2 * spread / (number**2 * width) * math.log(math.sqrt(spread) / alpha))
    return Interval(mean - margin, mean + margin)


Times: TypeAlias = Sequence[tuple[float, float]]
"""Histogram of times: upper end of each bucket in milliseconds, smallest first, and number of times in it."""


def quantile_interval(times: Times, quantile: float, alpha: float) -> Interval:
    """Interval in milliseconds of a quantile of times, valid at every look; each side has half of `alpha`.

    Without enough times, the low end is 0 and the high end infinite. See Howard & Ramdas 2022,
    arXiv 1906.09512.
    """
    most, share = math.log(2 / alpha), 1.0 - quantile
    numbers = [number for _, number in times]
    total, slower = sum(numbers), [*accumulate(reversed(numbers), initial=0.0)][::-1][1:]

    def is_below(place: int) -> bool:
        above = slower[place]
        return share_of(above, total - above).log_evidence_above(share) >= most

    def is_above(place: int) -> bool:
        above = slower[place]
        return share_of(above, total - above).log_evidence_below(share) >= most

    places = range(len(times))
    low = bisect_left(places, True, key=lambda place: not is_below(place))  # evidence shrinks along the ends
    high = bisect_left(places, True, key=is_above)
    return Interval(times[low - 1][0] if low else 0.0, times[high][0] if high < len(times) else math.inf)
