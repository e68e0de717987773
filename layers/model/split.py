"""Rows to train on and rows held out: every label on both sides where it can be, no group on two."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from layers.model.samples import Rows


def hold_out(labels: Sequence[int], groups: Sequence[str], share: float, seed: int) -> tuple[Rows, Rows]:
    """Positions to train on and positions held out: of each label about `share`, at least one row.

    Rows of one group stay on one side. A label whose groups are all larger than its share has no row held
    out. share: under a half, so that each label has rows to train on.
    """
    members = defaultdict(list)
    for position, group in enumerate(groups):
        members[group].append(position)
    counts = Counter(labels)
    wanted = {label: max(1, round(share * count)) for label, count in counts.items()}
    held_out: list[int] = []
    taken: Counter[int] = Counter()
    names = list(members)
    for place in np.random.default_rng(seed).permutation(len(names)):
        rows = members[names[place]]
        more = Counter(labels[row] for row in rows)
        if all(taken[label] + count <= wanted[label] for label, count in more.items()):
            held_out += rows
            taken += more
    chosen = set(held_out)
    rest = [row for row in range(len(labels)) if row not in chosen]
    return np.array(rest, dtype=np.int64), np.array(sorted(held_out), dtype=np.int64)
