"""Rows to train on and rows held out: content decides, so that a row keeps its side when the table grows."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from coldframe_training.training_data.samples import Rows


def hold_out(labels: Sequence[Hashable], groups: Sequence[str], share: float, use: str) -> tuple[Rows, Rows]:
    """Positions to train on and positions held out: about `share` of the groups, whole.

    A group's place among all groups follows from its name alone: under `share`, the group is held out.
    Three rules come first, the last one above all:
    1. Each label has a group held out: the lowest of its groups.
    2. A group of more than `share` of all rows is trained on.
    3. Each label has a group to train on: the highest.
    use: what the rows are held out for; two uses are independent of each other.
    """
    places = {group: place_of(group, use) for group in groups}
    sizes = Counter(groups)
    movable = {group for group, size in sizes.items() if size <= max(1, share * len(groups))}
    members = _groups_by_label(labels, groups, places)
    highest = {names[-1] for names in members.values()}
    lowest = {next((name for name in names if name in movable), names[-1]) for names in members.values()}
    under = {group for group, place in places.items() if place < share}
    rows = (under | lowest) & movable - highest
    is_held_out = np.array([group in rows for group in groups], dtype=bool)
    return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)


def place_of(group: str, use: str) -> float:
    """A number from 0 to 1 that follows from the names of group and use alone, evenly spread."""
    digest = hashlib.sha256(f"{use}\0{group}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def _groups_by_label(
    labels: Sequence[Hashable], groups: Sequence[str], places: Mapping[str, float]
) -> dict[Hashable, list[str]]:
    """The groups of each label, by their places."""
    members: dict[Hashable, set[str]] = defaultdict(set)
    for label, group in zip(labels, groups, strict=True):
        members[label].add(group)
    return {label: sorted(names, key=lambda name: (places[name], name)) for label, names in members.items()}
