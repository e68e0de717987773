"""Notes on parts of a template that differ from AWS, for the user who starts the emulator.

A note has a place in the template. Notes that say the same of several places become one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum


class Effect(StrEnum):
    """Beginning of the line: the effect on the place."""

    LEFT_OUT = "Left out"
    NOT_SET = "Not set"
    IGNORED = "Ignored"
    NOT_HERE = "Not on this machine"
    REFUSED = "AWS would refuse"
    MISSING = "Missing"


@dataclass(frozen=True, slots=True)
class Note:
    """why: the rest of the sentence, in which "it" would be the place."""

    effect: Effect
    where: str
    why: str


def short_lines(notes: Iterable[Note]) -> Iterator[str]:
    """The lines of `lines`, but for what is ignored: this is counted."""
    every, ignored = list(notes), f"{Effect.IGNORED}: "
    all_lines = list(lines(every))
    yield from (line for line in all_lines if not line.startswith(ignored))
    if places := sum(note.effect is Effect.IGNORED for note in every):
        yield f"Ignored: {places} properties of the template; `coldframe up --verbose` says which, and why."


def lines(notes: Iterable[Note]) -> Iterator[str]:
    """One line per effect and reason, with all their places: `Ignored: A.VpcConfig, B.VpcConfig: why.`"""
    places: dict[tuple[Effect, str], list[str]] = {}
    for note in notes:
        places.setdefault((note.effect, note.why), []).append(note.where)
    for effect in Effect:
        for (of_this, why), where in places.items():
            if of_this is effect:
                yield f"{effect}: {', '.join(dict.fromkeys(where))}: {why.rstrip('.')}."
