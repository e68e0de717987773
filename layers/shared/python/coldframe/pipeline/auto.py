"""The head `auto`: the estimator's guess where it is sure, else the mean of guess and partner head."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from coldframe.api.schemas import By
from coldframe.model.files import AUTO
from coldframe.vectors import Vector, to_floats, to_vector


class Guess(Struct, frozen=True):
    """What the estimator says of a text, and whether that may be the answer."""

    probabilities: list[float]
    sure: bool


class Giver(NamedTuple):
    """Who gave an answer. rushed: below its threshold, because there was no time for the encoder."""

    by: By
    rushed: bool = False


_GIVERS = (Giver("estimator"), Giver("ensemble"), Giver("estimator", rushed=True))
_VALUE_BYTES = 4


def answer_auto(guess: Guess, partner: Vector | None) -> Vector:
    """The answer for one text: (k + 1,), the probabilities and behind them the number of their giver.

    partner: probabilities (k,) by the partner head; None where none is needed or there is no time for it.
    """
    if partner is None:
        return to_vector([*guess.probabilities, 0 if guess.sure else 2])
    pairs = zip(guess.probabilities, to_floats(partner), strict=True)
    return to_vector([*((own + other) / 2 for own, other in pairs), 1])


def split_answers(rows: Mapping[str, list[Vector]]) -> tuple[dict[str, list[Vector]], list[Giver]]:
    """Probabilities (k,) of all rows by head, and who gave those of `auto`, if it is among them."""
    answers = rows.get(AUTO, [])
    givers = [_GIVERS[int(to_floats(answer)[-1])] for answer in answers]
    bare = {AUTO: [answer[:-_VALUE_BYTES] for answer in answers]} if answers else {}
    return {**rows, **bare}, givers
