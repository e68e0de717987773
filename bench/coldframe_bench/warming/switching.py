"""FeMux's switching: for each block of slots, the forecaster that suits an application best.

FeMux chooses by features of the block before, with clusters learnt on other applications. Here the forecaster
with the least RUM in that block is chosen; and, as the bound of any such choice, the one that turns out best.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coldframe_bench.warming.demand import Levels
from coldframe_bench.warming.rum import Ratio, score

BLOCK = 504


def switched(
    peaks: Levels,
    offered: Sequence[Levels],
    ratio: Ratio,
    memory_gb: float,
    slot_s: float,
    *,
    hindsight: bool = False,
) -> Levels:
    """Levels of the chosen one of `offered`, block by block; of the first one before there is a block.

    hindsight: each block is served by what is best in it, which nobody can know.
    """
    warm = np.zeros_like(peaks)
    current = 0
    for start in range(0, len(peaks), BLOCK):
        block = slice(start, start + BLOCK)
        costs = [score(peaks[block], levels[block], ratio, memory_gb, slot_s).rum for levels in offered]
        best = int(np.argmin(costs))
        warm[block] = offered[best if hindsight else current][block]
        current = best
    return warm
