"""The study of experiments simulates what decides in the service, and its bandits beat equal shares."""

import math
from pathlib import Path

import numpy as np
import pytest

from coldframe.experiments.criteria import MISMATCH_ALPHA
from coldframe.experiments.evidence import (
    PairCounts,
    SplitCounts,
    gain_in_pairs,
    gain_in_split,
    log_label_mismatch,
)
from coldframe_bench.records.raw_files import Fact, Results, Run
from coldframe_bench.studies.bandit_replay import EQUAL, ESTIMATOR, SCENES, Answers, replay
from coldframe_bench.studies.experiments import (
    FIXED,
    HELD,
    PROMOTED,
    REGRET,
    SKEWED,
    STOPPED,
    Shares,
    Trial,
    bets,
    experiments_table,
    holds,
    skewed,
    trials,
)

TRIALS = trials()


def evidence_of(trial: Trial, counts: list[int]) -> float:
    """The evidence of the product for counts of each kind of answer."""
    if len(counts) == 3:
        return gain_in_pairs(PairCounts(*counts)).log_evidence_above(0.0)
    share = 0.5 if "50%" in trial.name else 0.1
    return gain_in_split([SplitCounts(share, *counts)]).log_evidence_above(0.0)


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.name)
def test_simulated_evidence_is_the_products(trial: Trial) -> None:
    """The product of the study's factors is the evidence that decides about a candidate."""
    begin, factors = bets(trial, is_gain=True)
    kinds = np.random.default_rng(3).choice(len(trial.equal), 500, p=trial.equal)
    capital = begin * factors[kinds].prod(axis=0)
    counts = np.bincount(kinds, minlength=len(trial.equal)).tolist()
    assert math.log(capital.sum()) == pytest.approx(evidence_of(trial, counts), abs=1e-9)


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.name)
def test_a_worse_candidate_is_worse_by_the_loss(trial: Trial) -> None:
    """Kinds of answers have probabilities; the candidate loses three points against the baseline."""
    for chances in (trial.equal, trial.worse):
        assert math.fsum(chances) == pytest.approx(1)
    values = [value for value, _ in trial.kinds[0].games[0][0]]
    for chances, gain in ((trial.equal, 0.0), (trial.worse, -0.03)):
        assert math.fsum(np.multiply(chances, values)) == pytest.approx(gain, abs=1e-9)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_simulated_mismatches_are_the_products(share: float) -> None:
    """The study's evidence about the arms of labels, label by label, is the product's."""
    dice, shares, own = np.random.default_rng(5), Shares(share, 3), np.zeros(3, dtype=int)
    for label in range(1, 200):
        is_own = dice.random(3) < 2 * share
        own += is_own
        shares.add(is_own)
        for run, evidence in enumerate(shares.log_mismatch):
            counts = SplitCounts(share, int(own[run]), 0, label - int(own[run]), 0)
            assert evidence == pytest.approx(log_label_mismatch([counts]), abs=1e-9)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_labels_that_come_as_they_should_hold_nobody(share: float) -> None:
    """Of 10,000 runs with a look after each label, fewer than the level are held, within chance."""
    held = holds(share, 10_000, 400)
    most = 10_000 * MISMATCH_ALPHA
    assert (held > 0).sum() <= most + 2 * math.sqrt(most)


def test_skewed_labels_are_equally_right() -> None:
    """Labels of the candidate come twice as often, and both arms stay equal."""
    trial = next(trial for trial in TRIALS if trial.share == 0.5)
    right, wrong, base_right, base_wrong = skewed(trial)
    assert right + wrong == pytest.approx(2 / 3)
    assert right / wrong == pytest.approx(base_right / base_wrong)


def test_bandits_beat_equal_shares_where_arms_differ() -> None:
    """Where one arm is good and changes, each bandit earns more than the best single arm would."""
    dice = np.random.default_rng(1)
    right = dice.random((4, 500)) < 0.7
    answers, scene = Answers(right, dice.random(500), right[1], right[2]), SCENES[2]
    equal = replay(answers, scene, EQUAL, 0)
    assert equal.to_moving > 0.15
    for method in ("exp3", "thompson"):
        regret = replay(answers, scene, method, 0)
        assert regret.to_single < 0
        assert regret.to_moving < equal.to_moving


def test_buckets_find_the_arm_of_each_confidence() -> None:
    """Where one arm is right on sure texts and the other one on unsure texts, buckets beat the single arm."""
    confidence = np.random.default_rng(1).random(500)
    mlp = np.tile(confidence < 0.5, (4, 1))
    answers = Answers(mlp, confidence, confidence >= 0.5, mlp[0])
    alone, apart = (
        replay(answers, ESTIMATOR, method, 0) for method in ("thompson", "thompson by confidence")
    )
    assert alone.to_single > -0.1
    assert apart.to_single < -0.5


def test_the_table_says_what_is_missed() -> None:
    """Goals that are missed are marked, and medians count runs that were never stopped as infinite."""
    facts = [
        Fact(FIXED, "case", 100.0),
        *(Fact(PROMOTED, "case", look) for look in (0.0, 3.0)),
        *(Fact(SKEWED, "case", look) for look in (0.0, 0.0)),
        *(Fact(HELD, "case", look) for look in (0.0, 9.0)),
        *(Fact(STOPPED, "case", look) for look in (150.0, 90.0, 0.0)),
        Fact(REGRET, "case: the best single arm", 0.04),
        Fact(REGRET, "case: the best arm in each part", 0.12),
    ]
    run = Run("experiments", "", "", False, "", "", [], 1, 1, "", "", {}, 0.0, 27, {})
    promoted, uneven, held, stopped, regret = experiments_table(
        Results(Path("x"), run, list(facts))
    ).splitlines()[2:]
    assert "50.00%" in promoted
    assert "**missed**" in promoted
    assert uneven.endswith("≤ 5 %: met |") and held.endswith("≤ 0.05 %: **missed** |")
    assert "1.50 × the 100" in stopped
    assert "| case | 4.0%; 12.0% to the best arm in each part |" in regret
    assert regret.endswith("met |")
