"""Which rows share a forward pass: rows of equal length, under a token budget.

Rows of equal length need no padding and no attention mask, so a row's
embedding cannot depend on its neighbours, and no token is computed in vain.
"""

from collections import defaultdict
from collections.abc import Sequence

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
