"""Acceptance criteria of a candidate, each checked against the counts of both arms.

A criterion holds or fails by evidence that is valid at every look. Otherwise it is not decided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from coldframe.betting import Interval, Outcomes, least_growth
from coldframe.experiments.evidence import (
    PairCounts,
    SplitCounts,
    Times,
    gain_in_pairs,
    gain_in_split,
    log_label_mismatch,
    quantile_interval,
    share_of,
)

_FEWEST = 10  # outcomes, below which no rate is extrapolated
_P99 = 0.99
_MOST_LOG = 600.0  # of evidence, so that a level stays above 0

MISMATCH_ALPHA = 0.001 / 2
"""Chance that shares hold a candidate by mistake: those of a stage's answers, or those of all labels."""


@dataclass(frozen=True)
class Criteria:
    """Acceptance criteria of a candidate; None leaves one out.

    alpha: largest chance that a candidate passes a criterion which it misses, and largest chance that one
    criterion which it meets sends it back. min_answers: of the candidate, in each stage.
    least_gain: accuracy by feedback minus the baseline's; 0: better, -0.01: at most one point worse.
    min_agreement: share of texts with equal labels. max_errors: share of failed answers.
    max_p99_ratio: p99 of the candidate's times over the baseline's.
    """

    alpha: float = 0.05
    min_answers: int = 100
    least_gain: float | None = 0.0
    min_agreement: float | None = None
    max_errors: float | None = 0.01
    max_p99_ratio: float | None = None


@dataclass(frozen=True)
class ArmCounts:
    """Counts of one arm in one stage.

    errors: of the answers. right, wrong: labelled answers. times: of answers that no cache gave.
    subjects: numbers by which the arms' shares are checked; None: the answers.
    """

    answers: int = 0
    errors: int = 0
    right: int = 0
    wrong: int = 0
    times: Times = ()
    subjects: int | None = None


@dataclass(frozen=True)
class StageCounts:
    """Counts of one stage. share: of the candidate, 0 to 1."""

    share: float
    baseline: ArmCounts = field(default_factory=ArmCounts)
    candidate: ArmCounts = field(default_factory=ArmCounts)


@dataclass(frozen=True)
class Counts:
    """Counts of an experiment. stages: up to the present one, which is the last.

    pairs: labelled texts that both arms answered; None in a split, where each text has one arm.
    compared: texts that both arms answered, with a label or without; agreed: texts with equal answers.
    """

    stages: Sequence[StageCounts]
    pairs: PairCounts | None = None
    compared: int = 0
    agreed: int = 0

    @property
    def stage(self) -> StageCounts:
        """The present stage."""
        return self.stages[-1]

    @property
    def gain(self) -> Outcomes:
        """Outcomes whose mean is the candidate's accuracy minus the baseline's, over all stages."""
        if self.pairs is not None:
            return gain_in_pairs(self.pairs)
        return gain_in_split(self._splits())

    def level_of_gain(self, alpha: float) -> float:
        """The level at which the gain is judged: `alpha`, divided by the evidence for a mismatch of labels.

        Labels that come at wrong rates look like a gain before they are enough to be called a mismatch.
        """
        return alpha * math.exp(-min(_MOST_LOG, max(0.0, log_label_mismatch(self._splits()))))

    def mismatch_of_labels(self) -> str:
        """A clause about labels that do not come in the arms' shares; otherwise an empty string."""
        splits = self._splits()
        if log_label_mismatch(splits) < math.log(1 / MISMATCH_ALPHA):
            return ""
        worst = max(splits, key=lambda split: log_label_mismatch([split]))
        own, other = worst.right + worst.wrong, worst.baseline_right + worst.baseline_wrong
        return (
            f"has {rough_percent(own / (own + other))} % of the labels instead of {100 * worst.share:g} %,"
            " so accuracy is not judged until labels are sent for the drawn answers of both arms"
        )

    def _splits(self) -> list[SplitCounts]:
        """Labels of the stages in which chance chose an arm; none where both arms answer each text."""
        if self.pairs is not None:
            return []
        return [
            SplitCounts(stage.share, one.right, one.wrong, other.right, other.wrong)
            for stage in self.stages
            for one, other in [(stage.candidate, stage.baseline)]
            if 0 < stage.share < 1
        ]

    @property
    def baseline_times(self) -> Times:
        """Times of the baseline in the last stage in which it had traffic."""
        return next((stage.baseline.times for stage in reversed(self.stages) if stage.baseline.times), ())


class Check(NamedTuple):
    """One criterion. holds: None while it is not decided. fact: a clause that says why."""

    name: str
    holds: bool | None
    fact: str


class _Levels(NamedTuple):
    """Chances of a mistake: that a criterion holds, and that it fails."""

    passing: float
    failing: float


def check_all(criteria: Criteria, counts: Counts, stages: int) -> list[Check]:
    """The criteria, checked against the counts. stages: number of all stages.

    Accuracy and agreement are shown by the counts of all stages together; errors and p99 in each stage anew,
    so the chance that one of these fails by mistake is shared by the stages.
    """
    candidate = counts.stage.candidate
    once = _Levels(criteria.alpha, criteria.alpha)
    each = _Levels(criteria.alpha, criteria.alpha / max(1, stages))
    checks = []
    if criteria.least_gain is not None:
        checks.append(_check_gain(counts, criteria.least_gain, criteria.alpha))
    if criteria.min_agreement is not None:
        agreement = share_of(counts.agreed, counts.compared - counts.agreed)
        checks.append(_check_agreement(agreement, criteria.min_agreement, once))
    if criteria.max_errors is not None:
        errors = share_of(candidate.errors, candidate.answers - candidate.errors)
        checks.append(_check_errors(errors, criteria.max_errors, each))
    if criteria.max_p99_ratio is not None:
        checks.append(_check_p99(counts.baseline_times, candidate.times, criteria.max_p99_ratio, each))
    return checks


def _check_gain(counts: Counts, least: float, alpha: float) -> Check:
    if mismatch := counts.mismatch_of_labels():
        return Check("accuracy", None, f"it {mismatch}")
    gain, level = counts.gain, counts.level_of_gain(alpha)
    levels = _Levels(level, level)
    holds = _verdict(gain.log_evidence_above(least), gain.log_evidence_below(least), levels)
    if holds is None:
        return Check("accuracy", None, forecast(gain, least, levels.passing, "labels", "its accuracy"))
    return Check("accuracy", holds, f"its accuracy minus the baseline's is {points(gain, levels.passing)}")


def _check_agreement(agreement: Outcomes, least: float, levels: _Levels) -> Check:
    holds = _verdict(agreement.log_evidence_above(least), agreement.log_evidence_below(least), levels)
    if holds is None:
        return Check("agreement", None, forecast(agreement, least, levels.passing, "texts", "its agreement"))
    share = percents(agreement, levels.passing)
    return Check("agreement", holds, f"it agrees with the baseline on {share} of the texts")


def _check_errors(errors: Outcomes, most: float, levels: _Levels) -> Check:
    holds = _verdict(errors.log_evidence_below(most), errors.log_evidence_above(most), levels)
    if holds is None:
        return Check("errors", None, forecast(errors, most, levels.passing, "answers", "its errors"))
    return Check("errors", holds, f"{percents(errors, levels.passing)} of its answers fail")


def _check_p99(baseline: Times, candidate: Times, ratio: float, levels: _Levels) -> Check:
    """Both quantiles are bounded, each with half of the level."""

    def holds_with(growth: float) -> bool | None:
        usual, own = (_p99(times, growth, levels.failing) for times in (baseline, candidate))
        if own.low > ratio * usual.high:
            return False
        usual, own = (_p99(times, growth, levels.passing) for times in (baseline, candidate))
        return True if own.high <= ratio * usual.low else None

    holds, number = holds_with(1.0), sum(count for _, count in candidate)
    own, usual = (_p99(times, 1.0, levels.passing) for times in (candidate, baseline))
    if holds is not None:
        return Check("p99", holds, f"its p99 is {_span_ms(own)}, and the baseline's {_span_ms(usual)}")
    growth = least_growth(lambda factor: holds_with(factor) is not None) if number >= _FEWEST else None
    more = None if growth is None else number * (growth - 1)
    return Check("p99", None, _forecast(number, more, "answers", "its p99"))


def _p99(times: Times, growth: float, alpha: float) -> Interval:
    return quantile_interval([(end, count * growth) for end, count in times], _P99, alpha)


def _verdict(log_for: float, log_against: float, levels: _Levels) -> bool | None:
    if log_against >= math.log(1 / levels.failing):
        return False
    return True if log_for >= math.log(1 / levels.passing) else None


def forecast(outcomes: Outcomes, bound: float, alpha: float, unit: str, subject: str) -> str:
    """Clause that says how many more outcomes probably decide on which side of a bound the mean is.

    unit: plural noun of the outcomes. subject: quantity, such as "its accuracy".
    """
    sides = (outcomes.needed_above(bound, alpha), outcomes.needed_below(bound, alpha))
    more = min((number for number in sides if number is not None), default=None)
    return _forecast(outcomes.number, more, unit, subject)


def _forecast(number: float, more: float | None, unit: str, subject: str) -> str:
    if number < _FEWEST:
        return f"{number:.0f} {unit} are too few to judge {subject}"
    if more is None:
        return f"at the present rates, no number of {unit} decides about {subject}"
    return f"about {_rounded(more):,} more {unit} are probably needed to judge {subject}"


def _rounded(number: float) -> int:
    """The next number with two digits that are not 0."""
    unit = int(10 ** max(0, math.floor(math.log10(max(1.0, number))) - 1))
    return max(1, math.ceil(number / unit)) * unit


def points(gain: Outcomes, alpha: float) -> str:
    """Interval of a gain in percentage points; each end is wrong with a chance of at most `alpha`."""
    low, high = gain.interval(2 * alpha)
    return f"{100 * low:+.1f} to {100 * high:+.1f} points"


def percents(share: Outcomes, alpha: float) -> str:
    """Interval of a share in percent; each end is wrong with a chance of at most `alpha`."""
    low, high = share.interval(2 * alpha)
    return f"{round(100 * low, 2):g} to {round(100 * high, 2):g} %"


def rough_percent(share: float) -> str:
    """A share in percent, with two digits."""
    return f"{100 * share:.0f}" if share >= 0.1 else f"{100 * share:.2g}"


def _span_ms(span: Interval) -> str:
    return f"{span.low:.3g} to {span.high:.3g} ms" if math.isfinite(span.high) else f"above {span.low:.3g} ms"
