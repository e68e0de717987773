"""Batches of rows with different lengths, where padding is allowed."""

from collections.abc import Sequence

from coldframe.model.encoder import Batch


def plan_mixed(lengths: Sequence[int], max_positions: int) -> list[Batch]:
    """Batches that cover every row once, shortest rows first.

    lengths: tokens of each row.
    A batch has at most `max_positions` positions, its rows × its longest; a longer row is a batch of its own.
    """
    batches: list[Batch] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batches and (len(batches[-1]) + 1) * lengths[row] <= max_positions:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches
