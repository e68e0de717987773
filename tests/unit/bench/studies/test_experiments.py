"""The study of experiments simulates what decides in the service, and its bandits beat equal shares."""

import math
from pathlib import Path

import numpy as np
import pytest

from bench.records.raw_files import Fact, Results, Run
from bench.studies.bandit_replay import EQUAL, SCENES, Answers, replay
from bench.studies.experiments import FIXED, PROMOTED, REGRET, STOPPED, Trial, bets, experiments_table, trials
from coldframe.experiments.evidence import PairCounts, SplitCounts, gain_in_pairs, gain_in_split

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


def test_bandits_beat_equal_shares_where_arms_differ() -> None:
    """Where one arm is good and changes, each bandit earns more than the best single arm would."""
    dice = np.random.default_rng(1)
    answers = Answers(dice.random((4, 500)) < 0.7, dice.random(500))
    equal = replay(answers, SCENES[-1], EQUAL, 0)
    assert equal.to_moving > 0.15
    for method in ("exp3", "thompson"):
        regret = replay(answers, SCENES[-1], method, 0)
        assert regret.to_single < 0
        assert regret.to_moving < equal.to_moving


def test_the_table_says_what_is_missed() -> None:
    """Goals that are missed are marked, and medians count runs that were never stopped as infinite."""
    facts = [
        Fact(FIXED, "case", 100.0),
        *(Fact(PROMOTED, "case", look) for look in (0.0, 3.0)),
        *(Fact(STOPPED, "case", look) for look in (150.0, 90.0, 0.0)),
        Fact(REGRET, "case: the best single arm", 0.04),
        Fact(REGRET, "case: the best arm in each part", 0.12),
    ]
    run = Run("experiments", "", "", False, "", "", [], 1, 1, "", "", {}, 0.0, 27, {})
    promoted, stopped, regret = experiments_table(Results(Path("x"), run, list(facts))).splitlines()[2:]
    assert "50.00%" in promoted
    assert "**missed**" in promoted
    assert "1.50 × the 100" in stopped
    assert "| case | 4.0%; 12.0% to the best arm in each part |" in regret
    assert regret.endswith("met |")
