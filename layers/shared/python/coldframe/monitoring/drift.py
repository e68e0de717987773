"""Drift: a sequential test for each quantity of the sketches, valid however often somebody looks.

A text's rank among the reference and all earlier texts of its week is uniform while nothing shifts. A bet
against uniform ranks grows only by chance: the bet of 1 reaches 100 in at most 1 % of weeks (Ville 1939).
Source: conformal test martingales, Vovk, Gammerman & Shafer 2022, Algorithmic Learning in a Random World,
chapter 8. Bets that start at each slot are mixed, so that a late shift is found as well: e-detectors, Shin,
Ramdas & Rinaldo 2023, arXiv 2203.03532. Projections have moments alone. Their bet is the likelihood ratio of
means: Perez-Ortiz, Lardy, de Heide & Grünwald 2022, arXiv 2208.07610.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby
from operator import add
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from coldframe.monitoring.reference import HISTOGRAMS
from coldframe.monitoring.sketch import PROJECTIONS, UNIT, Counts, Sketch, distinct

ALPHA = 0.01  # largest share of weeks with a false alarm
ALARM_EVIDENCE = -math.log10(ALPHA)
LEAST_DISTANCE = 0.05  # smaller shifts raise no alarm, however certain they are
WEEK_S = 7 * 86_400.0
SLOTS_S = {"hour": 3600.0, "day": 86_400.0}
EMBEDDING = "embedding"
QUANTITIES = (*HISTOGRAMS, EMBEDDING)

_RANK_BINS = 35  # more than labels of most models, so that a shift between neighbours shows
_GRIDS = ((5, 10.0), (_RANK_BINS, 6.0))  # bins of ranks to bet on, and pseudo-counts with which a bet begins
_MEAN_SHIFT = 0.3  # standard deviations: the shift of a mean that the likelihood ratio expects
_NORMAL_OVERLAP = 0.4  # total variation between two normal distributions, per standard deviation
_CHUNK = 20_000  # texts ranked at once
_SEED = 20

Slot: TypeAlias = Literal["hour", "day"]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


class Shift(Struct, frozen=True):
    """One quantity in one week.

    evidence: decimal logarithm of the bet's value; 2 is a false alarm in one of 100 weeks. distance: total
    variation between texts before `since_s` and since then, 0 to 1. since_s: likely start, in seconds.
    """

    quantity: str
    evidence: float
    distance: float
    since_s: float


class Week(Struct, frozen=True):
    """The test of one week. evidence: of all quantities together. shifts: largest evidence first."""

    start_s: float
    texts: int
    evidence: float
    drifted: bool
    shifts: list[Shift]


class _Bet(NamedTuple):
    """Natural logarithms of bets on one quantity, and their distances.

    by_start: (t, k), after slot t from slot k; -inf for k > t. distance: between the texts before slot k and
    those from slot k to slot t.
    """

    by_start: Floats
    distance: Callable[[int, int], float]


def find_drift(reference: Counts | None, sketches: Sequence[Sketch], slot: Slot = "hour") -> list[Week]:
    """The test of each week that has texts.

    sketches: of one model and head. Without a reference, the first week is compared with its own beginning,
    and later weeks with the first. slot: "day" where the mixture of texts changes with the hour: then texts
    of whole days are compared.
    """
    weeks = []
    for start_s, slots in _weeks(sketches, slot):
        weeks.append(_judge(reference, start_s, slots, SLOTS_S[slot]))
        if reference is None:
            reference = reduce(add, slots.values())
    return weeks


def _weeks(sketches: Sequence[Sketch], slot: Slot) -> Iterator[tuple[float, dict[int, Counts]]]:
    """Start of each week, with the counts of each slot that has texts."""
    for week, of_week in groupby(distinct(sketches), lambda sketch: sketch.end_s // WEEK_S):
        slots: dict[int, Counts] = {}
        for sketch in of_week:
            number = int(sketch.end_s % WEEK_S // SLOTS_S[slot])
            slots[number] = slots[number] + sketch.counts if number in slots else sketch.counts
        yield week * WEEK_S, slots


def _judge(reference: Counts | None, start_s: float, slots: Mapping[int, Counts], slot_s: float) -> Week:
    dice = np.random.default_rng(_SEED)
    bets = {name: _bet_on_ranks(reference, name, list(slots.values()), dice) for name in HISTOGRAMS}
    bets[EMBEDDING] = _bet_on_means(reference, list(slots.values()))
    share = slot_s / WEEK_S  # of the stake, for the bet that starts at each slot
    values = {name: _mixture(bet.by_start, share) for name, bet in bets.items()}
    together = np.logaddexp.reduce(list(values.values()), axis=0) - math.log(len(values))
    starts = [start_s + number * slot_s for number in slots]
    shifts = [_shift(name, bet, values[name], starts) for name, bet in bets.items()]
    shifts.sort(key=lambda shift: shift.evidence, reverse=True)
    evidence = max(0.0, float(together.max()) / math.log(10))
    drifted = evidence >= ALARM_EVIDENCE and shifts[0].distance >= LEAST_DISTANCE
    texts = sum(counts.texts for counts in slots.values())
    return Week(start_s, texts, evidence, bool(drifted), shifts)


def _shift(name: str, bet: _Bet, values: Floats, starts: Sequence[float]) -> Shift:
    """The strongest moment of a bet, and the start that gained most until then."""
    moment = int(values.argmax())
    start = int(bet.by_start[moment].argmax())
    evidence = max(0.0, float(values[moment]) / math.log(10))
    return Shift(name, evidence, bet.distance(start, moment), starts[start])


def _mixture(by_start: Floats, share: float) -> Floats:
    """Value of the whole stake after each slot, (t,). The stake of later starts waits."""
    waiting = np.log(np.maximum(1 - share * np.arange(1, len(by_start) + 1), 1e-300))
    mixed: Floats = np.logaddexp(np.logaddexp.reduce(by_start, axis=1) + math.log(share), waiting)
    return mixed


def _bet_on_ranks(
    reference: Counts | None, name: str, slots: Sequence[Counts], dice: np.random.Generator
) -> _Bet:
    """Bets on the ranks of texts in a histogram. A bet follows the ranks since its start."""
    counts = np.array([getattr(slot, name) for slot in slots], dtype=np.int64)  # (t, bins)
    bag = (
        np.zeros(counts.shape[1], dtype=np.int64) if reference is None else np.array(getattr(reference, name))
    )
    ranks = _since_each_start(rank_counts(bag, counts, dice))  # (t, k, bins of ranks)
    bets = [_rank_bet(ranks, bins, prior) for bins, prior in _GRIDS]

    def distance(start: int, moment: int) -> float:
        return total_variation(bag + counts[:start].sum(axis=0), counts[start : moment + 1].sum(axis=0))

    return _Bet(_from_start(np.logaddexp.reduce(bets, axis=0) - math.log(len(bets))), distance)


def _rank_bet(ranks: Ints, bins: int, prior: float) -> Floats:
    """Logarithm of the bet that learns the shares of the ranks in a grid: Dirichlet mixture, (t, k).

    ranks: counts (t, k, bins of ranks). prior: pseudo-counts of each bin of the grid.
    """
    cells = ranks.reshape(*ranks.shape[:2], bins, -1).sum(axis=3)
    texts = cells.sum(axis=2)
    steps = np.arange(texts.max(initial=0))
    each, total = (
        np.concatenate([[0.0], np.cumsum(np.log(start + steps))]) for start in (prior, bins * prior)
    )
    value: Floats = each[cells].sum(axis=2) - total[texts] + texts * math.log(bins)
    return value


def rank_counts(bag: Ints, slots: Ints, dice: np.random.Generator) -> Ints:
    """Number of texts by slot and bin of their rank among all texts before them: (t, 35).

    bag: counts of the reference by bin, (b,). slots: counts of each slot, (t, b). Texts of a slot have a
    random order, and equal texts have a random rank.
    """
    length, bins = slots.shape
    texts = np.repeat(np.tile(np.arange(bins), length), slots.ravel())
    slot = np.repeat(np.arange(length), slots.sum(axis=1))
    texts = texts[np.lexsort((dice.random(len(texts)), slot))]
    before = bag.astype(np.int64)
    ranks = np.empty(len(texts))
    for start in range(0, len(texts), _CHUNK):
        chunk = texts[start : start + _CHUNK]
        rows = np.arange(len(chunk))
        each = np.zeros((len(chunk), bins), dtype=np.int64)
        each[rows, chunk] = 1
        earlier = before + np.cumsum(each, axis=0) - each
        equal = earlier[rows, chunk]
        higher = earlier[:, ::-1].cumsum(axis=1)[:, ::-1][rows, chunk] - equal
        ranks[start : start + _CHUNK] = (higher + dice.random(len(chunk)) * (equal + 1)) / (
            earlier.sum(axis=1) + 1
        )
        before = before + each.sum(axis=0)
    cells = slot * _RANK_BINS + np.minimum((ranks * _RANK_BINS).astype(np.int64), _RANK_BINS - 1)
    return np.bincount(cells, minlength=length * _RANK_BINS).reshape(length, _RANK_BINS)


def _bet_on_means(reference: Counts | None, slots: Sequence[Counts]) -> _Bet:
    """Bets on the means of random projections: that they differ from the reference's and earlier slots'."""
    number, sums, squares = (
        np.array([_moments(reference)[part], *(_moments(slot)[part] for slot in slots)], dtype=np.float64)
        for part in range(3)
    )  # the reference comes first: (1 + t, 1), (1 + t, p), (1 + t, p)
    before, first, second = (np.cumsum(part, axis=0)[:-1] for part in (number, sums, squares))
    since, moved = _since_each_start(number[1:]), _since_each_start(sums[1:])  # (t, k, 1), (t, k, p)
    usual = first / np.maximum(before, 1)
    variance = np.maximum(second / np.maximum(before, 1) - usual**2, 1e-12)
    difference = moved / np.maximum(since, 1) - usual
    usable = (since > 0) & (before > 1)
    chance = 1 / np.maximum(since, 1) + 1 / np.maximum(before, 1)
    expected = chance + _MEAN_SHIFT**2
    values = 0.5 * (
        np.log(chance / expected) + difference**2 / variance * (1 / chance - 1 / expected)
    )  # (t, k, p)
    mean = np.logaddexp.reduce(np.where(usable, values, 0.0), axis=2) - np.log(values.shape[2])
    apart = np.where(usable, np.abs(difference) / np.sqrt(variance), 0.0).max(axis=2)  # (t, k)

    def distance(start: int, moment: int) -> float:
        return float(min(1.0, _NORMAL_OVERLAP * apart[moment, start]))

    return _Bet(_from_start(mean), distance)


def _moments(counts: Counts | None) -> tuple[list[float], list[float], list[float]]:
    """Number, sums and squares of the projections; a length of zero where nothing was embedded."""
    if counts is None:
        return [0.0], [0.0] * PROJECTIONS, [0.0] * PROJECTIONS
    return (
        [float(counts.embedded[0])],
        [value / UNIT for value in counts.projections],
        [value / UNIT for value in counts.projection_squares],
    )


def _since_each_start(slots: NDArray[Any]) -> NDArray[Any]:
    """Sums from slot k to slot t, (t, k, …). Where k > t they are nought."""
    cumulative = np.cumsum(slots, axis=0)
    sums = cumulative[:, None] - (cumulative - slots)[None, :]
    past: NDArray[Any] = sums * np.tri(len(slots), dtype=np.int64)[:, :, None]
    return past


def _from_start(values: Floats) -> Floats:
    """Values (t, k) with -inf where the start k is after t."""
    return np.where(np.tri(len(values), dtype=bool), values, -np.inf)


def total_variation(one: Ints, other: Ints) -> float:
    """Distance of two histograms, 0 to 1; 0 where one is empty."""
    if not one.sum() or not other.sum():
        return 0.0
    return float(0.5 * np.abs(one / one.sum() - other / other.sum()).sum())
