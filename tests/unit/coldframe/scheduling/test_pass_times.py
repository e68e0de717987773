"""What is learnt of passes, and the budget that follows them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.scheduling.budget import TokenBudget
from coldframe.scheduling.limits import Limits
from coldframe.scheduling.pass_times import PassTimes


def gains(rows: int, length: int) -> float:
    """A device where short rows gain from company, as a core does, and long ones lose by it."""
    return 3e-4 + 6e-5 * rows * length * (1 + max(0, rows * length - 256) / 2000)


def taught(seed: int, passes: int = 4000, noise: float = 0.1) -> PassTimes:
    """Pass times that have seen passes of all sizes, some of them interrupted for long."""
    times, chance = PassTimes(), random.Random(seed)
    for _ in range(passes):
        length = chance.choice([8, 12, 16, 32, 128, 256])
        rows = 1 << chance.randrange(8)
        if rows * length <= 1024:
            seconds = gains(rows, length) * chance.lognormvariate(0, noise)
            times.observe(rows, rows * length, seconds * (20 if chance.random() < 0.02 else 1))
    return times


@pytest.mark.parametrize("seed", range(3))
def test_finds_out_whether_company_pays(seed: int) -> None:
    """Short rows are put together and long ones are not, by what their passes took."""
    times = taught(seed)
    assert times.best_rows(8, 1024) >= 8
    assert times.best_rows(256, 1024) == 1


@pytest.mark.parametrize("seed", range(3))
def test_predictions_are_close(seed: int) -> None:
    """Sizes that were seen are predicted to within a fifth, though some passes took twenty times as long."""
    times = taught(seed)
    for rows, length in ((1, 8), (8, 8), (16, 32), (1, 256), (2, 128)):
        predicted_s = times.shape_s(rows, rows * length) * times.pace
        assert predicted_s == pytest.approx(gains(rows, length), rel=0.2)


def test_a_slow_machine_is_noticed_and_forgotten() -> None:
    """The pace follows a neighbour that takes half of the machine, and its leaving, within 30 passes."""
    times = taught(0, noise=0.0)
    before = times.pace
    for factor in (2.0, 1.0):
        for _ in range(30):
            times.observe(8, 8 * 16, factor * gains(8, 16))
        predicted_s = times.shape_s(8, 8 * 16) * times.pace
        assert predicted_s == pytest.approx(factor * gains(8, 16), rel=0.1)
    assert times.pace == pytest.approx(before, rel=0.5)


def test_one_interrupted_pass_changes_little() -> None:
    """A pass that took a hundred times as long moves what is predicted by less than a fifth."""
    times = taught(0, noise=0.0)
    before = times.shape_s(8, 128) * times.pace
    times.observe(8, 128, 100 * gains(8, 16))
    assert times.shape_s(8, 128) * times.pace < 1.2 * before


def test_margin_follows_the_deviation() -> None:
    """Promises keep more distance on a machine whose passes vary more."""
    assert 1 < taught(0, noise=0.0).margin < taught(0, noise=0.3).margin


@given(st.lists(st.tuples(st.integers(1, 64), st.integers(1, 256), st.floats(1e-6, 10)), max_size=200))
def test_any_passes_may_be_seen(passes: list[tuple[int, int, float]]) -> None:
    """Whatever passes take, predictions are positive and the best size is within the budget."""
    times = PassTimes()
    for rows, length, seconds in passes:
        times.observe(rows, rows * length, seconds)
        assert 0 < times.shape_s(rows, rows * length) * times.pace < 1e6
        assert 1 <= times.best_rows(length, 512) <= max(1, 512 // length)
        assert 1 <= times.margin < 3


def test_budget_grows_in_steps_and_shrinks_by_a_share() -> None:
    """Additive increase while full passes are in time, multiplicative decrease when one is not."""
    budget = TokenBudget(256, 1024, objective_s=0.01)
    grown = []
    for _ in range(3):
        budget.observe(budget.tokens // 16, budget.tokens // 16 * 16, 0.005)
        grown.append(budget.tokens)
    assert grown == [320, 384, 448]
    budget.observe(28, 448, 0.02)
    assert budget.tokens == int(448 * 0.9)


def test_budget_learns_from_full_passes_only() -> None:
    """A small pass in time, and a pass of one row whatever it takes, leave the budget as it is."""
    budget = TokenBudget(256, 1024, objective_s=0.01)
    budget.observe(2, 32, 0.001)
    budget.observe(1, 256, 5.0)
    assert budget.tokens == 256


@given(st.lists(st.tuples(st.integers(1, 64), st.integers(1, 4096), st.floats(0, 1)), max_size=100))
def test_budget_stays_in_its_range(passes: list[tuple[int, int, float]]) -> None:
    """Between 64 tokens and the most that is allowed."""
    budget = TokenBudget(512, 2048, objective_s=0.05)
    for rows, tokens, seconds in passes:
        budget.observe(rows, tokens, seconds)
        assert 64 <= budget.tokens <= 2048


def test_limits_say_what_is_wrong() -> None:
    """A limit that would admit nothing is refused by name."""
    with pytest.raises(ValueError, match="workers=0"):
        Limits(workers=0)
