"""Bandits follow rewards, whatever the order, delay and age of labels."""

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.experiments.bandit import BUCKETS, Bandit, Key, Method, Rewards, bucket_of, merged, reward_of

METHODS = list(Method)

keys = st.builds(Key, st.integers(0, BUCKETS - 1), st.integers(0, 5), st.integers(0, 2))
rewards = st.builds(reward_of, st.floats(0, 1), st.floats(0.02, 1))
counts = st.dictionaries(keys, rewards, max_size=8)


def rewards_of(right: int, wrong: int, probability: float = 0.5) -> Rewards:
    """Counts of some right and wrong answers."""
    return sum([reward_of(1, probability)] * right + [reward_of(0, probability)] * wrong, start=Rewards())


@given(st.lists(counts, max_size=5), st.randoms())
def test_counts_are_merged_in_any_order(parts: list[dict[Key, Rewards]], dice: random.Random) -> None:
    """Counts of environments have one sum, to the last digit, in whatever order and grouping they come."""
    shuffled = dice.sample(parts, len(parts))
    whole = merged(shuffled)
    assert whole == merged(parts)
    assert whole == merged([merged(shuffled[:2]), merged(shuffled[2:])])


@given(counts, keys, rewards)
def test_a_removed_label_leaves_nothing(before: dict[Key, Rewards], key: Key, label: Rewards) -> None:
    """A label that is removed again changes no share."""
    after = merged([before, {key: label}, {key: -label}])
    assert after[key] == before.get(key, Rewards())


@pytest.mark.parametrize("method", METHODS)
@given(parts=counts, period=st.integers(0, 9), bucket=st.integers(0, BUCKETS - 1))
def test_shares_are_shares(method: Method, parts: dict[Key, Rewards], period: int, bucket: int) -> None:
    """Shares sum to 1, and no arm has less than the floor."""
    shares = Bandit(method, floor=0.05).shares(parts, 3, period, bucket)
    assert math.isclose(sum(shares), 1)
    assert min(shares) >= 0.05 - 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_without_labels_the_arms_are_equal(method: Method) -> None:
    """Nobody knows anything at the start, so each arm gets as much; a floor above that changes nothing."""
    assert Bandit(method).shares({}, 4, 0) == pytest.approx([0.25] * 4)
    assert Bandit(method, floor=0.9).shares({}, 4, 0) == pytest.approx([0.25] * 4)


@pytest.mark.parametrize("method", METHODS)
def test_a_better_arm_gets_more(method: Method) -> None:
    """An arm that is right more often gets nearly all of the traffic, and the rest keeps the floor."""
    seen = {Key(0, 0, 0): rewards_of(300, 100), Key(0, 0, 1): rewards_of(340, 60)}
    shares = Bandit(method, floor=0.02).shares(seen, 2, 0)
    assert shares[1] > 0.6
    assert shares[0] >= 0.02


@pytest.mark.parametrize("method", METHODS)
def test_old_periods_are_forgotten(method: Method) -> None:
    """An arm that was good once loses its share to one that is good now; the oldest periods count no more."""
    bandit = Bandit(method, memory=0.5)
    seen = {
        Key(0, 0, 0): rewards_of(200, 0), Key(0, 0, 1): rewards_of(50, 150),
        Key(0, 6, 0): rewards_of(50, 150), Key(0, 6, 1): rewards_of(200, 0),
    }  # fmt: skip
    early, late = (
        bandit.shares({key: seen[key] for key in seen if key.period <= now}, 2, now) for now in (0, 6)
    )
    assert early[0] > 0.8
    assert late[1] > 0.8
    oldest = bandit.oldest(20)
    assert oldest == 20 - math.ceil(math.log(0.01) / math.log(0.5))
    assert bandit.shares(seen, 2, 20) == bandit.shares({}, 2, 20)
    assert Bandit(method, memory=1.0).oldest(20) == 0


@pytest.mark.parametrize("method", METHODS)
def test_clocks_that_are_ahead_do_no_harm(method: Method) -> None:
    """A reward of a later period counts as one of the present period."""
    ahead, now = ({Key(0, period, 1): rewards_of(20, 2)} for period in (9, 4))
    assert Bandit(method).shares(ahead, 2, 4) == Bandit(method).shares(now, 2, 4)


def test_buckets_are_apart() -> None:
    """Rewards of sure texts say nothing about unsure ones, and confidences lie in growing buckets."""
    seen = {Key(3, 0, 0): rewards_of(300, 0), Key(3, 0, 1): rewards_of(100, 200)}
    bandit = Bandit(Method.THOMPSON)
    assert bandit.shares(seen, 2, 0, bucket=3)[0] > 0.9
    assert bandit.shares(seen, 2, 0, bucket=0) == pytest.approx([0.5, 0.5])
    places = [bucket_of(value / 100) for value in range(101)]
    assert all(one <= other for one, other in pairwise(places))
    assert set(places) == set(range(BUCKETS))
    assert bucket_of(None) == 0


@given(st.floats(0.02, 0.98), st.floats(0.02, 0.98), st.floats(0, 1))
def test_losses_are_weighted_by_the_probability_of_their_answer(
    first: float, second: float, loss: float
) -> None:
    """The mean of an arm's weighted losses is its loss, whatever the shares were when it answered."""
    mean = (first * reward_of(1 - loss, first).loss_ppm + second * reward_of(1 - loss, second).loss_ppm) / 2
    assert mean == pytest.approx(1_000_000 * loss, abs=1)


def exact_chance(one: Rewards, other: Rewards) -> float:
    """Probability that the first of two posteriors is above the second, by its finite sum.

    Source: Evan Miller 2015, Formulas for Bayesian A/B testing.
    """
    right, total = one.reward_ppm // 1_000_000, one.labels
    a, b = 1 + right, 1 + total - right
    c = 1 + other.reward_ppm // 1_000_000
    d = 2 + other.labels - c

    def log_beta(x: float, y: float) -> float:
        return math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)

    return math.fsum(
        math.exp(log_beta(c + i, b + d) - math.log(b + i) - log_beta(1 + i, b) - log_beta(c, d))
        for i in range(a)
    )


@given(st.integers(0, 80), st.integers(0, 80), st.integers(0, 80), st.integers(0, 80))
def test_thompson_shares_are_the_chances_to_be_best(a: int, b: int, c: int, d: int) -> None:
    """The share of an arm is the probability that it is the best, by the exact sum for two arms."""
    one, other = rewards_of(a, b), rewards_of(c, d)
    shares = Bandit(Method.THOMPSON, floor=0.0).shares({Key(0, 0, 0): one, Key(0, 0, 1): other}, 2, 0)
    assert shares[0] == pytest.approx(exact_chance(one, other), abs=0.01)


@pytest.mark.parametrize("method", METHODS)
def test_late_labels_cost_little(method: Method) -> None:
    """Where labels come 500 answers late, the better arm still has most of the traffic at the end."""
    dice, bandit = random.Random(27), Bandit(method, memory=1.0)
    seen: dict[Key, Rewards] = {}
    late: list[tuple[Key, Rewards]] = []
    shares = [0.5, 0.5]
    for answer in range(4_000):
        if answer % 100 == 0:
            shares = bandit.shares(seen, 2, 0)
        arm = int(dice.random() < shares[1])
        late.append((Key(0, 0, arm), reward_of(dice.random() < (0.6, 0.75)[arm], shares[arm])))
        if answer >= 500:
            key, label = late[answer - 500]
            seen[key] = seen.get(key, Rewards()) + label
    assert shares[1] > 0.8
