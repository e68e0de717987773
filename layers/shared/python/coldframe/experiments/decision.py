"""Decision about a candidate at its stage: it advances, waits, is sent back or has finished, with a reason.

Every look is allowed. A candidate advances by evidence alone: criteria that are not decided keep it waiting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from coldframe.experiments.criteria import (
    MISMATCH_ALPHA,
    Check,
    Counts,
    Criteria,
    StageCounts,
    check_all,
    forecast,
    percents,
    points,
    rough_percent,
)
from coldframe.experiments.evidence import log_ratio_mismatch, share_of


class Action(StrEnum):
    """Actions of a decision."""

    ADVANCE = "advance"
    HOLD = "hold"
    SEND_BACK = "send-back"
    FINISH = "finish"


class Decision(NamedTuple):
    """An action, with its reason in one sentence, and the criteria that it was derived from."""

    action: Action
    reason: str
    checks: Sequence[Check] = ()


def decide(criteria: Criteria, counts: Counts, shares: Sequence[float]) -> Decision:
    """The decision about a candidate, after any number of looks.

    shares: of the candidate in all stages, first to last. A wrong promotion, and a wrong way back by one
    criterion, have a chance of at most `criteria.alpha` over all looks and stages.
    """
    checks = check_all(criteria, counts, len(shares))
    failed = [check.fact for check in checks if check.holds is False]
    undecided = [check.fact for check in checks if check.holds is None]
    if failed:
        return Decision(Action.SEND_BACK, f"The candidate is sent back: {' and '.join(failed)}.", checks)
    if waiting := _reason_to_wait(criteria, counts):
        return Decision(Action.HOLD, waiting, checks)
    if undecided or not checks:
        reason = " and ".join(undecided) or "no criterion is set that could show anything"
        return Decision(Action.HOLD, f"The candidate waits: {reason}.", checks)
    kept = f"it meets its criteria for {_listed([check.name for check in checks])}"
    if len(counts.stages) < len(shares):
        following = f"{100 * shares[len(counts.stages)]:g} %"
        return Decision(Action.ADVANCE, f"The candidate advances to {following}: {kept}.", checks)
    return Decision(Action.FINISH, f"The candidate has passed its last stage: {kept}.", checks)


def status(counts: Counts, alpha: float = 0.05) -> str:
    """Knowledge about the candidate in one sentence: better, worse, or not yet known."""
    gain = counts.gain
    if not gain.number:
        return _status_without_labels(counts, alpha)
    if mismatch := counts.mismatch_of_labels():
        return f"It is not yet known which arm is better: the candidate {mismatch}."
    level = counts.level_of_gain(alpha)
    most = math.log(1 / level)
    for word, evidence in (("better", gain.log_evidence_above(0.0)), ("worse", gain.log_evidence_below(0.0))):
        if evidence >= most:
            return f"The candidate is {word}: its accuracy minus the baseline's is {points(gain, level)}."
    return f"It is not yet known which arm is better: {forecast(gain, 0.0, level, 'labels', 'that')}."


def _status_without_labels(counts: Counts, alpha: float) -> str:
    unknown = "It is not yet known which arm is better: no labels have come"
    if not counts.compared:
        return f"{unknown}."
    agreement = share_of(counts.agreed, counts.compared - counts.agreed)
    return f"{unknown}, and the arms agree on {percents(agreement, alpha)} of the texts."


def _reason_to_wait(criteria: Criteria, counts: Counts) -> str:
    """A sentence if this stage's counts cannot be used yet; otherwise an empty string."""
    stage = counts.stage
    if counts.pairs is None and (mismatch := _mismatch(stage)):
        return mismatch
    if stage.candidate.answers < criteria.min_answers:
        number = f"{stage.candidate.answers:,} of {criteria.min_answers:,}"
        return f"The candidate waits: it has given {number} answers that this stage needs."
    return ""


def _mismatch(stage: StageCounts) -> str:
    if not 0 < stage.share < 1:
        return ""
    unit = "answers" if stage.candidate.subjects is None or stage.baseline.subjects is None else "subjects"
    numbers = [getattr(arm, unit) for arm in (stage.baseline, stage.candidate)]
    shares = [1 - stage.share, stage.share]
    if log_ratio_mismatch(numbers, shares) < math.log(1 / MISMATCH_ALPHA):
        return ""
    share = rough_percent(numbers[1] / sum(numbers))
    return (
        f"The candidate waits: it has {share} % of the {unit} instead of {100 * stage.share:g} %,"
        " so choose another subject or look for lost counts."
    )


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
