"""Which rows share a forward pass: rows of equal length, under a token budget.

Rows of equal length need no padding and no attention mask, so a row's
embedding cannot depend on its neighbours, and no token is computed in vain.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from math import inf, prod

Batch = list[int]
"""Positions of the rows that share one forward pass."""


def plan_batches(lengths: Sequence[int], max_batch_tokens: int) -> list[Batch]:
    """Batches that cover every row once, shortest rows first.

    lengths: tokens of each row.
    A batch holds rows of one length and at most `max_batch_tokens` tokens; a
    longer row is a batch of its own.
    """
    by_length: dict[int, list[int]] = defaultdict(list)
    for row, length in enumerate(lengths):
        by_length[length].append(row)
    return [
        batch
        for length in sorted(by_length)
        for batch in _chunks(by_length[length], max(1, max_batch_tokens // max(1, length)))
    ]


def _chunks(rows: list[int], size: int) -> list[Batch]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


_CANDIDATES = (128, 256, 512)
_LENGTHS = (16, 64, 128)  # tokens of a headline, of a paragraph, of a long one
_PASSES = 3
_WORTH_IT = 0.97
_A_TOKEN = 2000  # any word will do


def measure_budget(
    encode: Callable[[Sequence[list[int]]], object],
    default: int,
    clock: Callable[[], float] = time.perf_counter,
) -> int:
    """The budget with which this machine encodes quickest, measured in about half a second.

    encode: makes embeddings of rows of equal length.
    default: kept unless another budget is quicker by more than three hundredths, by the
    geometric mean over texts of three lengths.
    """
    budgets = sorted({default, *_CANDIDATES})
    quickest_s = {(budget, length): inf for budget in budgets for length in _LENGTHS}
    for _ in range(_PASSES):
        for budget, length in quickest_s:  # in turns: a busy moment is one for all of them
            rows = [[_A_TOKEN] * length] * max(1, budget // length)
            started_s = clock()
            encode(rows)
            taken_s = (clock() - started_s) / len(rows)
            quickest_s[budget, length] = min(quickest_s[budget, length], taken_s)
    scores = {budget: prod(quickest_s[budget, length] for length in _LENGTHS) for budget in budgets}
    best = min(budgets, key=scores.__getitem__)
    return best if scores[best] < scores[default] * _WORTH_IT ** len(_LENGTHS) else default
