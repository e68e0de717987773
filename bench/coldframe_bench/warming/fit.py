"""The weights that the warmer's forecast starts with: learnt on functions of a trace, for other functions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

from coldframe.warming.contexts import RATES, SIDES
from coldframe.warming.forecast import Forecaster
from coldframe.warming.mixture import Mixture
from coldframe.warming.weights import Weights
from coldframe_bench.warming.demand import Demand

_RATE, _ROUNDS = 0.003, 2
_START = (*(0.2,) * SIDES, *(0.05,) * RATES, -0.3)


def fit(
    demands: Sequence[Demand],
    seed: int = 0,
    progress: Callable[[Sequence[Demand]], Iterable[Demand]] = iter,
) -> Weights:
    """All levels of all functions learn the same weights, one function after the other, twice.

    seed: seed for the order of the functions. progress: wraps the functions of each round.
    """
    shared = [list(_START) for _ in range(3)]

    def new_mixture() -> Mixture:
        mixture = Mixture(rate=_RATE)
        mixture.weights = shared
        return mixture

    order, source = list(demands), random.Random(seed)
    for _ in range(_ROUNDS):
        source.shuffle(order)
        for demand in progress(order):
            forecaster = Forecaster(demand.slot_s, new_mixture=new_mixture)
            for peak in demand.peaks.tolist():
                forecaster.observe(peak)
    return tuple(tuple(round(weight, 3) for weight in row) for row in shared)
