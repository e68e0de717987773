"""Drift is found soon after a shift, and seldom without one."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from msgspec.structs import asdict
from numpy.typing import NDArray

from coldframe.monitoring.drift import LEAST_DISTANCE, Week, find_drift, rank_counts
from coldframe.monitoring.sketch import PROJECTIONS, UNIT, Counts, Sketch, empty_counts

LABELS = 5
HOUR_S = 3600
WEEK_HOURS = 168

Shares = dict[str, NDArray[np.float64]]


def usual_shares() -> Shares:
    """Texts of a usual kind: shares of each histogram's bins."""
    shapes = {name: len(sums) for name, sums in asdict(empty_counts(LABELS)).items()}
    shares = {}
    for name in ("confidence", "length", "unknown", "out_of_distribution", "labels", "fragments"):
        weights = np.linspace(1, 3, shapes[name])
        shares[name] = weights / weights.sum()
    return shares


USUAL = usual_shares()
TYPED = USUAL | {"fragments": USUAL["fragments"][::-1]}
SURER = USUAL | {"confidence": USUAL["confidence"][::-1]}


def draw(dice: np.random.Generator, texts: int, shares: Shares = USUAL, middle: float = 0.0) -> Counts:
    """Counts over random texts; each has an embedding. middle: mean of its projections."""
    values = middle + dice.normal(size=(texts, PROJECTIONS))
    histograms = {name: dice.multinomial(texts, weights).tolist() for name, weights in shares.items()}
    moments = {
        "embedded": [texts],
        "projections": np.rint(UNIT * values.sum(axis=0)).astype(int).tolist(),
        "projection_squares": np.rint(UNIT * (values**2).sum(axis=0)).astype(int).tolist(),
    }
    return Counts(**(asdict(empty_counts(LABELS)) | histograms | moments))


def week_of(slots: Sequence[Counts], first_hour: int = 0) -> list[Sketch]:
    """A sketch for each hour."""
    ends = (HOUR_S * (first_hour + number) + 1800.0 for number in range(len(slots)))
    return [Sketch("m", "auto", "e", number, 0.0, end_s, slots[number]) for number, end_s in enumerate(ends)]


def judge(reference: Counts | None, slots: Sequence[Counts]) -> Week:
    (week,) = find_drift(reference, week_of(slots))
    return week


def test_weeks_without_a_shift_raise_no_alarm() -> None:
    """At most 1 % of 100 short weeks raise an alarm; the reference is a sample, too."""
    alarms = 0
    for seed in range(100):
        dice = np.random.default_rng(seed)
        reference = draw(dice, 1000)
        week = judge(reference, [draw(dice, int(dice.poisson(30))) for _ in range(24)])
        alarms += week.evidence >= 2
    assert alarms <= 1


def test_ranks_of_one_kind_of_texts_are_uniform() -> None:
    """Ranks are spread evenly over their bins, for a reference of any size and texts with equal values."""
    dice = np.random.default_rng(3)
    shares = np.array([0.5, 0.3, 0.2])
    for size in (0, 10, 1000):
        ranks = rank_counts(dice.multinomial(size, shares), dice.multinomial(100, shares, size=400), dice)
        assert ranks.sum() == 40_000
        assert np.abs(ranks.sum(axis=0) / 40_000 * 35 - 1).max() < 0.1


@pytest.mark.parametrize(
    ("quantity", "shifted"),
    [
        ("confidence", lambda dice: draw(dice, 100, SURER)),
        ("labels", lambda dice: draw(dice, 100, USUAL | {"labels": np.array([0.5, 0.2, 0.1, 0.1, 0.1])})),
        ("fragments", lambda dice: draw(dice, 100, TYPED)),
        ("embedding", lambda dice: draw(dice, 100, middle=0.4)),
    ],
)
@pytest.mark.parametrize("quiet_hours", [0, 20, 120])
def test_a_shift_is_found_within_500_texts(
    quantity: str, shifted: Callable[[np.random.Generator], Counts], quiet_hours: int
) -> None:
    """Five hours of 100 shifted texts raise an alarm that names the quantity and its first hour."""
    dice = np.random.default_rng(quiet_hours)
    quiet = [draw(dice, 100) for _ in range(quiet_hours)]
    week = judge(draw(dice, 2000), [*quiet, *(shifted(dice) for _ in range(5))])
    assert week.drifted
    assert week.shifts[0].quantity == quantity
    assert week.shifts[0].distance > LEAST_DISTANCE
    assert abs(week.shifts[0].since_s - HOUR_S * quiet_hours) <= HOUR_S
    if quiet_hours:
        assert not judge(draw(dice, 2000), quiet).drifted


def test_a_daily_rhythm_of_the_volume_is_no_drift() -> None:
    """Nights with a tenth of the texts raise no alarm."""
    dice = np.random.default_rng(1)
    slots = [draw(dice, 200 if 8 <= hour % 24 < 20 else 20) for hour in range(WEEK_HOURS)]
    assert judge(draw(dice, 2000), slots).evidence < 2


def test_sketches_from_before_a_quantity_raise_no_alarm_when_it_begins() -> None:
    """The share of fragments has no evidence without texts, and new texts are compared with new ones."""
    dice = np.random.default_rng(4)
    before = {name: shares for name, shares in USUAL.items() if name != "fragments"}
    reference, old = draw(dice, 2000, before), [draw(dice, 100, before) for _ in range(24)]
    week = judge(reference, old)
    assert {shift.quantity: shift.evidence for shift in week.shifts}["fragments"] < 1e-9
    assert not judge(reference, [*old, *(draw(dice, 100) for _ in range(24))]).drifted
    new = [*(draw(dice, 100) for _ in range(24)), *(draw(dice, 100, TYPED) for _ in range(5))]
    changed = judge(reference, new)
    assert changed.drifted
    assert changed.shifts[0].quantity == "fragments"


def test_whole_days_are_compared_where_the_mixture_has_a_rhythm() -> None:
    """Nights of another kind are a shift by the hour, and none by whole days; a shift of days is found."""
    dice = np.random.default_rng(1)

    def days(share: float, number: int) -> list[Counts]:
        kinds = [SURER if hour < 24 * share else USUAL for hour in range(24)] * number
        return [draw(dice, 20, shares) for shares in kinds]

    sketches = week_of(days(0.5, 4))
    assert find_drift(None, sketches, "hour")[0].drifted
    assert not find_drift(None, sketches, "day")[0].drifted
    assert find_drift(None, week_of([*days(0.5, 4), *days(1.0, 2)]), "day")[0].drifted


def test_a_week_without_a_reference_is_compared_with_its_beginning() -> None:
    """Without a reference a shift inside the first week is found, and later weeks are compared with it."""
    dice = np.random.default_rng(5)
    quiet, shifted = ([draw(dice, 50, shares) for _ in range(24)] for shares in (USUAL, SURER))
    assert judge(None, [*quiet, *shifted]).drifted
    assert not judge(None, quiet).drifted
    later = [
        Sketch("m", "auto", "later", number, 0.0, 604_800.0 + HOUR_S * number, counts)
        for number, counts in enumerate(shifted)
    ]
    assert [week.drifted for week in find_drift(None, [*week_of(quiet), *later])] == [False, True]


def test_order_and_repetition_change_nothing() -> None:
    """Sketches that come twice or out of order give the report of each once, in order."""
    dice = np.random.default_rng(2)
    reference, sketches = draw(dice, 500), week_of([draw(dice, 30) for _ in range(10)])
    assert find_drift(reference, [*sketches[::-1], *sketches]) == find_drift(reference, sketches)


def test_no_traffic_and_few_texts_are_no_drift() -> None:
    """Without texts there is no week, and ten texts of another kind are too few for an alarm."""
    dice = np.random.default_rng(2)
    assert find_drift(draw(dice, 500), []) == []
    assert not judge(draw(dice, 500), [draw(dice, 10, SURER)]).drifted


def test_a_tiny_shift_raises_no_alarm() -> None:
    """A shift below the least distance is certain after many texts, and still no alarm."""
    dice = np.random.default_rng(4)
    tilted = USUAL["confidence"] * (1 + 0.06 * np.sign(np.linspace(-1, 1, 20)))
    shares = USUAL | {"confidence": tilted / tilted.sum()}
    week = judge(draw(dice, 100_000), [draw(dice, 20_000, shares) for _ in range(10)])
    assert week.evidence > 2
    assert not week.drifted
