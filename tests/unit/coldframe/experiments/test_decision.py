"""Decisions follow the evidence: nothing advances without it, and what fails is sent back with its reason."""

import random
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe.experiments.criteria import ArmCounts, Counts, Criteria, StageCounts
from coldframe.experiments.decision import Action, Decision, decide, status
from coldframe.experiments.evidence import PairCounts

STAGES = (0.01, 0.1, 0.5, 1.0)
QUICK = ((10.0, 9_000), (20.0, 960), (30.0, 38), (40.0, 2))
SLOW = ((10.0, 9_000), (20.0, 700), (60.0, 100), (90.0, 200))
USUAL = Criteria(max_p99_ratio=2.0)
ALL = Criteria(min_agreement=0.9, max_p99_ratio=2.0)


def split(share: float = 0.1, answers: int = 10_000, errors: int = 0, gain: float = 0.05) -> StageCounts:
    """A stage whose arms have labels for half of their answers, and differ by a gain in accuracy."""
    own, other = round(answers * share), round(answers * (1 - share))
    right, base = round(own / 2 * (0.8 + gain)), round(other / 2 * 0.8)
    return StageCounts(
        share,
        ArmCounts(other, 0, base, other // 2 - base, QUICK),
        ArmCounts(own, errors, right, own // 2 - right, QUICK),
    )


def decision_of(*stages: StageCounts, criteria: Criteria = USUAL) -> Decision:
    return decide(criteria, Counts(stages), STAGES)


def test_a_better_candidate_advances_and_finishes() -> None:
    """A candidate that meets every criterion gets the next share; after the last stage it has finished."""
    stage = split(answers=40_000)
    decision = decision_of(stage)
    assert decision.action == Action.ADVANCE
    assert decision.reason == (
        "The candidate advances to 10 %: it meets its criteria for accuracy, errors and p99."
    )
    last = StageCounts(1.0, candidate=ArmCounts(5_000, 2, times=QUICK))
    assert decision_of(stage, stage, stage, last).action == Action.FINISH


def test_the_last_stage_needs_counts_of_its_own() -> None:
    """Full traffic that has shown nothing yet is not finished, whatever the stages before have shown."""
    decision = decision_of(*[split(answers=40_000)] * 3, StageCounts(1.0))
    assert decision == (Action.HOLD, decision.reason, decision.checks)
    assert "0 of 100 answers" in decision.reason


def test_a_worse_candidate_is_sent_back() -> None:
    """Labels that show a lower accuracy send the candidate back, at the first stage and at later ones."""
    worse = split(share=0.5, answers=20_000, gain=-0.05)
    decision = decision_of(split(answers=500), worse)
    assert decision.action == Action.SEND_BACK
    assert re.search(r"its accuracy minus the baseline's is -[\d.]+ to -[\d.]+ points", decision.reason)
    assert status(Counts([worse])).startswith("The candidate is worse: ")


def test_errors_send_back_before_anything_else() -> None:
    """A candidate that fails is sent back although it is better, and before it has given enough answers."""
    failing = split(answers=400, errors=20)
    decision = decision_of(failing, criteria=Criteria(min_answers=10_000))
    assert decision.action == Action.SEND_BACK
    assert "of its answers fail" in decision.reason


def test_a_slow_candidate_is_sent_back() -> None:
    """A p99 that is shown to be more than twice the baseline's sends the candidate back."""
    stage = split(answers=40_000)
    slow = replace(stage, candidate=replace(stage.candidate, times=SLOW))
    decision = decision_of(slow)
    assert decision.action == Action.SEND_BACK
    assert "its p99 is" in decision.reason


def test_a_p99_cannot_be_decided_from_few_answers() -> None:
    """With a few hundred times the criterion is not decided, and the reason says how many are needed."""
    few = tuple((end, count // 25) for end, count in QUICK)
    stage = split(answers=40_000)
    decision = decision_of(replace(stage, candidate=replace(stage.candidate, times=few)))
    assert decision.action == Action.HOLD
    assert re.search(r"about [\d,]+ more answers are probably needed to judge its p99", decision.reason)
    nothing = decision_of(replace(stage, candidate=replace(stage.candidate, times=())))
    assert "0 answers are too few to judge its p99" in nothing.reason


def test_shares_that_are_not_the_stages_hold_the_candidate() -> None:
    """Ten percent of the traffic that are fourteen keep the candidate waiting, with advice."""
    stage = split(answers=40_000)
    wrong = replace(stage, candidate=replace(stage.candidate, answers=6_000))
    assert decision_of(wrong).action == Action.HOLD
    assert "14 % of the answers instead of 10 %, so choose another subject" in decision_of(wrong).reason
    one_for_all = StageCounts(0.1, ArmCounts(500, subjects=500), ArmCounts(0, subjects=0))
    assert "0 % of the subjects instead of 10 %" in decision_of(one_for_all).reason


def labelled(share: float, own: tuple[int, int], other: tuple[int, int]) -> StageCounts:
    """A stage whose answers have the arms' shares, with (right, wrong) labels of each arm."""
    answers = round(20_000 * share)
    return StageCounts(
        share,
        ArmCounts(20_000 - answers, 0, *other, QUICK),
        ArmCounts(answers, 0, *own, QUICK),
    )


@pytest.mark.parametrize("right", [0.0, 1.0], ids=["wrong", "right"])
@pytest.mark.parametrize("arm", ["candidate", "baseline"])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_labels_of_one_arm_decide_nothing(share: float, arm: str, right: float) -> None:
    """Labels that come for one arm alone neither promote nor send back, after any number of them."""
    for number in (*range(1, 40), 50, 100, 400, 3_000):
        one = (round(right * number), round((1 - right) * number))
        own, other = (one, (0, 0)) if arm == "candidate" else ((0, 0), one)
        counts = Counts([labelled(share, own, other)])
        assert decide(Criteria(), counts, STAGES).action == Action.HOLD
    sentence = decide(Criteria(), counts, STAGES).reason
    part = "100" if arm == "candidate" else "0"
    clause = (
        f"has {part} % of the labels instead of {100 * share:g} %, so accuracy is not judged until labels"
        " are sent for the drawn answers of both arms."
    )
    assert sentence == f"The candidate waits: it {clause}"
    assert status(counts) == f"It is not yet known which arm is better: the candidate {clause}"


def test_errors_send_back_though_labels_mismatch() -> None:
    """Labels of one arm withhold the decision by accuracy alone."""
    stage = labelled(0.5, (200, 0), (0, 0))
    failing = replace(stage, candidate=replace(stage.candidate, errors=2_000))
    decision = decide(Criteria(), Counts([failing]), STAGES)
    assert decision.action == Action.SEND_BACK
    assert "of its answers fail" in decision.reason and "accuracy" not in decision.reason


def test_the_hold_ends_when_the_other_labels_come() -> None:
    """Labels of the other arm that come late end the hold, and the better arm is known."""
    assert "are sent for" in status(Counts([labelled(0.5, (1_900, 100), (0, 0))]))
    late = Counts([labelled(0.5, (1_900, 100), (1_600, 400))])
    assert status(late).startswith("The candidate is better")


def test_late_labels_of_an_earlier_stage_hold_nobody() -> None:
    """A new stage has no labels at first, and those of the stage before still come in its shares."""
    for late in range(0, 3_000, 100):
        before = labelled(0.1, (80 + late // 10, 20), (720 + late * 9 // 10, 180))
        counts = Counts([before, labelled(0.5, (0, 0), (0, 0))])
        assert not counts.mismatch_of_labels()
    assert counts.level_of_gain(0.05) == 0.05


def test_a_stage_with_wrong_labels_is_named() -> None:
    """The clause has the shares of the stage whose labels mismatch, also when a later stage is present."""
    counts = Counts([labelled(0.1, (90, 10), (80, 20)), labelled(0.5, (80, 20), (80, 20))])
    assert "has 50 % of the labels instead of 10 %" in status(counts)


@pytest.mark.parametrize("skew", [0.05, 0.5, 2.0, 20.0])
@pytest.mark.parametrize("accuracy", [0.8, 0.97])
def test_equal_arms_with_uneven_labels_are_seldom_decided(skew: float, accuracy: float) -> None:
    """Equal arms are neither promoted nor sent back more often because labels come more often for one."""
    dice, runs, chance = random.Random(27), 20, 0.5 * skew / (0.5 * skew + 0.5)
    for action in [_first_uneven(dice, chance, accuracy) for _ in range(runs)]:
        runs -= action != Action.HOLD
    assert runs >= 17


def _first_uneven(dice: random.Random, chance: float, accuracy: float) -> Action:
    """The first action other than to hold, within 400 labels. chance: that a label is the candidate's."""
    cells = {True: [0, 0], False: [0, 0]}
    for label in range(1, 401):
        cells[dice.random() < chance][dice.random() >= accuracy] += 1
        if label % 50 == 0 or label in (10, 20, 30):
            own, other = ((right, wrong) for right, wrong in (cells[True], cells[False]))
            action = decide(Criteria(max_errors=None), Counts([labelled(0.5, own, other)]), (0.5, 1.0)).action
            if action != Action.HOLD:
                return action
    return Action.HOLD


def test_a_shadow_is_judged_by_pairs_and_agreement() -> None:
    """Where both arms answer, discordant labels and agreement decide, and no share is checked."""
    shadow = StageCounts(1.0, ArmCounts(20_000, times=QUICK), ArmCounts(5_000, times=QUICK))
    counts = Counts([shadow], PairCounts(90, 40, 1_000), 5_000, 4_800)
    assert decide(ALL, counts, (1.0,)).action == Action.FINISH
    low = replace(counts, agreed=4_300)
    assert "it agrees with the baseline on" in decide(ALL, low, (1.0,)).reason
    assert decide(ALL, low, (1.0,)).action == Action.SEND_BACK
    unlabelled = replace(counts, pairs=PairCounts())
    assert "0 labels are too few to judge its accuracy" in decide(ALL, unlabelled, (1.0,)).reason
    assert re.fullmatch(
        r"It is not yet known which arm is better: no labels have come,"
        r" and the arms agree on 95[\d.]* to 9[67][\d.]* % of the texts\.",
        status(unlabelled),
    )


def test_status_says_how_many_more_labels_are_needed() -> None:
    """One sentence says better, worse, or how many more labels are probably needed."""
    assert status(Counts([split(answers=40_000)])).startswith("The candidate is better: its accuracy minus")
    assert re.fullmatch(
        r"It is not yet known which arm is better:"
        r" about [\d,]+ more labels are probably needed to judge that\.",
        status(Counts([split(answers=4_000)])),
    )
    equal = status(Counts([split(answers=4_000, gain=0.0)]))
    assert "no number of labels decides about that" in equal
    assert status(Counts([StageCounts(0.1)])).endswith("no labels have come.")


small = st.integers(0, 9)
margins = st.none() | st.sampled_from([0.0, -0.02])


@given(
    st.builds(ArmCounts, answers=st.integers(0, 200), right=small, wrong=small),
    st.builds(ArmCounts, answers=st.integers(0, 200), right=small, wrong=small),
    margins,
    st.sampled_from(STAGES),
)
def test_absence_of_evidence_never_promotes(
    baseline: ArmCounts, candidate: ArmCounts, least: float | None, share: float
) -> None:
    """Few answers and few labels never advance a candidate, even without a single error."""
    criteria = Criteria(min_answers=1, least_gain=least, max_p99_ratio=2.0)
    decision = decide(criteria, Counts([StageCounts(share, baseline, candidate)]), STAGES)
    assert decision.action in (Action.HOLD, Action.SEND_BACK)


def test_without_criteria_nothing_advances() -> None:
    """A candidate without any criterion waits for one."""
    criteria = Criteria(least_gain=None, max_errors=None)
    decision = decision_of(split(answers=40_000), criteria=criteria)
    assert decision.reason == "The candidate waits: no criterion is set that could show anything."


@settings(max_examples=30)
@given(st.integers(0, 3_000), st.integers(0, 3_000), st.integers(0, 20))
def test_more_errors_never_help(answers: int, further: int, errors: int) -> None:
    """More failed answers in place of good ones never turn a worse decision into a better one."""
    order = [Action.SEND_BACK, Action.HOLD, Action.ADVANCE]
    total = answers + further + errors
    criteria = Criteria(least_gain=None)
    actions = [
        decide(criteria, Counts([StageCounts(1.0, candidate=ArmCounts(total, number))]), (1.0, 1.0)).action
        for number in (errors, errors + further)
    ]
    assert order.index(actions[1]) <= order.index(actions[0])


def every_reason() -> Iterator[str]:
    """Reasons and status sentences of many counts."""
    for share in STAGES:
        for answers in (0, 40, 4_000, 80_000):
            for errors, gain in ((0, 0.1), (3, 0.0), (40, -0.1)):
                counts = Counts([split(share, answers, errors, gain)])
                yield decide(USUAL, counts, STAGES).reason
                yield status(counts)


def test_each_reason_is_one_sentence() -> None:
    """Reasons begin with a capital letter, end with the only full stop, and have plain figures."""
    for reason in set(every_reason()):
        assert re.fullmatch(r"[A-Z][^\n]*\.", reason), reason
        assert not re.search(r"\. [A-Z]|inf|nan|e[+-]\d|None", reason), reason


@pytest.mark.parametrize("paired", [True, False])
def test_equal_arms_are_seldom_promoted_or_sent_back(paired: bool) -> None:
    """With a look after every 50 answers, equal arms seldom advance, and are seldom sent back."""
    dice, runs = random.Random(27), 25
    actions = [_first_action(dice, paired) for _ in range(runs)]
    for action in (Action.ADVANCE, Action.SEND_BACK):
        assert actions.count(action) <= runs * 0.05 + 3 * (runs * 0.05) ** 0.5


def _first_action(dice: random.Random, paired: bool) -> Action:
    """The first action other than to hold, within 400 labelled answers of equal arms."""
    cells, criteria = [0, 0, 0, 0], Criteria(max_errors=None, min_answers=1)
    for answer in range(1, 401):
        if paired:
            cells[dice.choices(range(3), (0.05, 0.05, 0.9))[0]] += 1
        else:
            cells[2 * (dice.random() < 0.5) + (dice.random() < 0.8)] += 1
        if answer % 50:
            continue
        if paired:
            counts = Counts([StageCounts(1.0, candidate=ArmCounts(answer))], PairCounts(*cells[:3]))
        else:
            wrong, right, base_wrong, base_right = cells
            stage = StageCounts(
                0.5,
                ArmCounts(base_wrong + base_right, 0, base_right, base_wrong),
                ArmCounts(wrong + right, 0, right, wrong),
            )
            counts = Counts([stage])
        if (action := decide(criteria, counts, (0.5, 1.0)).action) != Action.HOLD:
            return action
    return Action.HOLD
