"""Evidence holds at every look: exact expectations, exact crossing probabilities, and simulated coverage."""

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.betting import Outcomes
from coldframe.experiments.evidence import (
    Moments,
    PairCounts,
    SplitCounts,
    gain_in_pairs,
    gain_in_split,
    log_ratio_mismatch,
    mean_interval,
    share_of,
)

ALPHA = 0.05
MOST = math.log(1 / ALPHA)


def expectation(chances: list[float], number: int, log_evidence: Callable[[list[int]], float]) -> float:
    """Mean of the evidence after `number` outcomes of some kinds, over all counts that are possible."""

    def counts_of(rest: int, kinds: int) -> Iterator[list[int]]:
        if kinds == 1:
            yield [rest]
            return
        for count in range(rest + 1):
            for others in counts_of(rest - count, kinds - 1):
                yield [count, *others]

    def chance_of(counts: list[int]) -> float:
        ways = math.factorial(number) / math.prod(map(math.factorial, counts))
        return ways * math.prod(chance**count for chance, count in zip(chances, counts, strict=True))

    every = counts_of(number, len(chances))
    return math.fsum(chance_of(counts) * math.exp(log_evidence(counts)) for counts in every)


@pytest.mark.parametrize("bound", [0.01, 0.3, 0.5, 0.9])
def test_evidence_about_a_share_gains_nothing_by_chance(bound: float) -> None:
    """Evidence against the true share has a mean of exactly 1, and less if the share is on the other side."""
    for number in (1, 7, 40):
        above = expectation([bound, 1 - bound], number, lambda n: share_of(*n).log_evidence_above(bound))
        below = expectation([bound, 1 - bound], number, lambda n: share_of(*n).log_evidence_below(bound))
        assert above == pytest.approx(1)
        assert below == pytest.approx(1)
        low = bound * 0.8
        assert expectation([low, 1 - low], number, lambda n: share_of(*n).log_evidence_above(bound)) < 1


@pytest.mark.parametrize("margin", [0.0, 0.02, 0.2])
def test_evidence_of_pairs_gains_nothing_by_chance(margin: float) -> None:
    """A candidate that is worse by exactly the margin has evidence of mean 1 that it is not."""
    for ties in (0.0, 0.6):
        lost = (1 - ties + margin) / 2
        chances = [lost - margin, lost, 1 - 2 * lost + margin]
        mean = expectation(chances, 12, lambda n: gain_in_pairs(PairCounts(*n)).log_evidence_above(-margin))
        assert mean == pytest.approx(1)


@pytest.mark.parametrize(("share", "accuracy"), [(0.5, 0.8), (0.1, 0.3), (0.9, 0.99)])
@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_evidence_of_a_split_gains_nothing_by_chance(share: float, accuracy: float, margin: float) -> None:
    """Assignment by chance makes the evidence fair, whatever the accuracy that both arms share."""
    chances = [
        share * (accuracy - margin), share * (1 - accuracy + margin),
        (1 - share) * accuracy, (1 - share) * (1 - accuracy),
    ]  # fmt: skip
    for number in (1, 6, 12):
        mean = expectation(
            chances, number, lambda n: gain_in_split([SplitCounts(share, *n)]).log_evidence_above(-margin)
        )
        assert mean == pytest.approx(1)


def crossing(chance: float, looks: int, outcomes_of: Callable[[int, int], Outcomes], bound: float) -> float:
    """Exact probability that the evidence ever reaches 1 / alpha, with a look after every outcome."""
    alive, crossed = {0: 1.0}, 0.0
    for look in range(1, looks + 1):
        following: defaultdict[int, float] = defaultdict(float)
        for hits, weight in alive.items():
            following[hits + 1] += weight * chance
            following[hits] += weight * (1 - chance)
        reached = {
            hits for hits in following if outcomes_of(hits, look - hits).log_evidence_above(bound) >= MOST
        }
        crossed += sum(following[hits] for hits in reached)
        alive = {hits: weight for hits, weight in following.items() if hits not in reached}
    return crossed


def test_a_look_after_each_pair_promotes_no_equal_arm_too_often() -> None:
    """Over 200 discordant pairs with a look after each, equal arms cross in at most 5 % of all sequences."""
    crossed = crossing(0.5, 200, lambda gained, lost: gain_in_pairs(PairCounts(gained, lost)), 0.0)
    assert 0.01 < crossed <= ALPHA


def test_a_look_after_each_answer_fails_no_good_share_too_often() -> None:
    """A share of slow answers that is exactly allowed is refuted in at most 5 % of all sequences."""
    assert crossing(0.05, 200, share_of, 0.05) <= ALPHA


def beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@given(st.integers(0, 3000), st.integers(0, 3000))
def test_pairs_are_as_strong_as_the_closed_mixture(gained: int, lost: int) -> None:
    """The mixture over some stakes is hardly weaker than 2^n B(b + 1/2, c + 1/2) / B(1/2, 1/2)."""
    number = gained + lost
    integral = number * math.log(2) + beta(gained + 0.5, lost + 0.5) - beta(0.5, 0.5)
    outcomes = gain_in_pairs(PairCounts(gained, lost))
    sides = (outcomes.log_evidence_above(0.0), outcomes.log_evidence_below(0.0))
    assert max(sides) >= 0.92 * integral - 1.5


@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 10_000))
def test_ties_do_not_count_without_a_margin(gained: int, lost: int, ties: int) -> None:
    """Texts on which both arms are right, or both wrong, say nothing about which arm is better."""
    with_ties = gain_in_pairs(PairCounts(gained, lost, ties)).log_evidence_above(0.0)
    assert with_ties == pytest.approx(gain_in_pairs(PairCounts(gained, lost)).log_evidence_above(0.0))


@given(st.integers(0, 500), st.integers(0, 500))
def test_sides_mirror_each_other(hits: int, others: int) -> None:
    """The evidence that a share is below a bound is the evidence that the rest is above the rest of it."""
    below = share_of(hits, others).log_evidence_below(0.3)
    assert below == pytest.approx(share_of(others, hits).log_evidence_above(0.7), abs=1e-9)


@given(st.integers(0, 60), st.integers(0, 60))
def test_intervals_lie_in_their_range(hits: int, others: int) -> None:
    """An interval contains the share so far, and never leaves 0 to 1; without answers it is all of it."""
    low, high = share_of(hits, others).interval(ALPHA)
    assert 0 <= low <= high <= 1
    if hits + others:
        assert low - 1e-6 <= hits / (hits + others) <= high + 1e-6
    else:
        assert (low, high) == (0, 1)


def test_intervals_hold_at_every_look() -> None:
    """Intervals of a split miss the true gain at some look in at most 5 % of runs with growing shares."""
    dice, runs, missed = random.Random(27), 150, 0
    for _ in range(runs):
        counts = [[0, 0, 0, 0], [0, 0, 0, 0]]
        shares = (0.1, 0.5)
        for answer in range(1, 801):
            stage = answer > 400
            is_candidate = dice.random() < shares[stage]
            base = 0.6 if answer % 100 < 50 else 0.9  # texts of the day are easier
            is_right = dice.random() < base + 0.05 * is_candidate
            counts[stage][2 * (not is_candidate) + (not is_right)] += 1
            if answer % 80 == 0 and _is_missed(counts, shares, 0.05):
                missed += 1
                break
    assert missed <= runs * ALPHA + 3 * math.sqrt(runs * ALPHA)


def _is_missed(counts: list[list[int]], shares: tuple[float, ...], gain: float) -> bool:
    stages = [SplitCounts(share, *cells) for share, cells in zip(shares, counts, strict=True)]
    outcomes = gain_in_split(stages)
    most = math.log(2 / ALPHA)
    return max(outcomes.log_evidence_above(gain), outcomes.log_evidence_below(gain)) >= most


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_further_answers_suffice_at_the_same_rates(share: float) -> None:
    """With as many further answers as forecast, at the rates so far, the evidence reaches its bound."""
    few = gain_in_split([SplitCounts(share, *(round(1000 * part) for part in (
        share * 0.85, share * 0.15, (1 - share) * 0.8, (1 - share) * 0.2)))])  # fmt: skip
    needed = few.needed_above(0.0, ALPHA)
    assert needed is not None
    (stage,) = few.games[0]
    counts = [round(count * (1 + needed / few.number)) for _, count in stage]
    assert gain_in_split([SplitCounts(share, *counts)]).log_evidence_above(0.0) >= MOST - 0.3
    assert few.log_evidence_above(0.0) < MOST


def test_nothing_is_forecast_from_nothing() -> None:
    """Without answers, or with rates on the other side, no number of further answers is named."""
    assert share_of(0, 0).needed_above(0.5, ALPHA) is None
    assert share_of(40, 60).needed_above(0.5, ALPHA) is None
    assert share_of(90, 10).needed_above(0.5, ALPHA) == 0


def test_a_quantile_needs_hundreds_of_answers() -> None:
    """No slow answer among 100 does not show that at most 1 % are slow; several hundred answers do."""
    assert share_of(0, 100).log_evidence_below(0.01) < MOST
    needed = share_of(0, 100).needed_below(0.01, ALPHA)
    assert needed is not None
    assert 298 <= 100 + needed <= 600  # 298: the fewest that show it in one look
    assert share_of(0, 600).log_evidence_below(0.01) >= MOST


def test_values_between_0_and_1_are_bounded_as_shares() -> None:
    """Sums of bounded values give a smaller capital than each value alone, so it is valid as well."""
    dice = random.Random(3)
    values = [dice.betavariate(4, 2) for _ in range(200)]
    sums = share_of(sum(values), len(values) - sum(values))
    each = Outcomes((((*((value, 1.0) for value in values), (0.0, 0.0)),),))
    assert sums.log_evidence_above(0.5) <= each.log_evidence_above(0.5)
    assert sums.number == pytest.approx(each.number)


@given(st.lists(st.integers(0, 200), min_size=3, max_size=3), st.permutations(range(3)))
def test_the_order_of_arms_changes_no_ratio_check(counts: list[int], order: list[int]) -> None:
    """The check of shares treats arms alike."""
    shares = (0.6, 0.3, 0.1)
    moved = log_ratio_mismatch([counts[arm] for arm in order], [shares[arm] for arm in order])
    assert moved == pytest.approx(log_ratio_mismatch(counts, shares), abs=1e-9)


def test_shares_as_assigned_raise_no_alarm_too_often() -> None:
    """The evidence against true shares has a mean of 1; arms that get too much, or all, are noticed."""
    for shares in ([0.5, 0.5], [0.9, 0.07, 0.03]):
        mean = expectation(shares, 20, partial(log_ratio_mismatch, shares=shares))
        assert mean == pytest.approx(1)
    assert log_ratio_mismatch([1800, 200], [0.9, 0.1]) < 0
    assert log_ratio_mismatch([1700, 300], [0.9, 0.1]) > math.log(1000)
    assert log_ratio_mismatch([60, 0], [0.9, 0.1]) > 0
    assert log_ratio_mismatch([60, 1], [1.0, 0.0]) == math.inf


def test_means_hold_at_every_look() -> None:
    """Intervals of a skewed mean miss it at some look after the 30th in at most 5 % of seeded runs."""
    dice, runs, missed = random.Random(5), 400, 0
    for _ in range(runs):
        values = [dice.expovariate(1 / 30) for _ in range(1000)]
        totals, squares = list(accumulate(values)), list(accumulate(value * value for value in values))
        intervals = [
            mean_interval(Moments(look, totals[look - 1], squares[look - 1]), ALPHA)
            for look in range(50, 1001, 25)
        ]
        missed += any(not low <= 30 <= high for low, high in filter(None, intervals))
    assert missed <= runs * ALPHA
    assert mean_interval(Moments(1, 3.0, 9.0), ALPHA) is None
