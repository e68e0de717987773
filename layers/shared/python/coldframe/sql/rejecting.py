"""`topic = x` with fewer texts for the encoder: rows whose estimate is far from x are rejected at once.

Predicate-based pruning, as Raven has it: Karanasos et al. 2020, "Extending Relational Query Processing with
ML Inference".
"""

import math
from collections.abc import Sequence

from coldframe.columns import distinct, predict_column, refuse_rushed, spread
from coldframe.model.estimator import LEAST, Guess, answer_auto
from coldframe.model.files import AUTO
from coldframe.pipeline.predictor import Predictor
from coldframe.timing import NO_DEADLINE, Deadline
from coldframe.vectors import ranked, to_floats

EXACT = math.inf
"""Odds that reject no row early, so that `is_topic` says what `topic` says: docs/decisions/0075."""


def are_topic(
    predictor: Predictor,
    texts: Sequence[str | None],
    label: str,
    rejecting_odds: float = EXACT,
    deadline: Deadline = NO_DEADLINE,
) -> list[bool | None]:
    """Whether `label` is the answer of `auto` for each row; None for a row without a text.

    An answer that abstains is no label.
    rejecting_odds: the estimator's odds against `label`, above which a row is rejected without the encoder.
    A finite number is quicker and may reject a row whose answer is `label`.
    Raises OutOfTime where rows are left that only the encoder can tell.
    """
    position = predictor.manifest.labels.index(label)
    unique = distinct(texts)
    found: dict[str, bool] = {}
    for text, guess in zip(unique, predictor.guess(unique, deadline), strict=True):
        if guess.sure:
            found[text] = _is_answer(predictor, guess, position)
        elif odds_against(guess, position) > rejecting_odds:
            found[text] = False
    rest = [text for text in unique if text not in found]
    answers = predict_column(predictor, rest, [AUTO], deadline=deadline)[AUTO]
    refuse_rushed(answers)
    found |= {
        text: answer is not None and answer.label == label for text, answer in zip(rest, answers, strict=True)
    }
    return spread(texts, found)


def odds_against(guess: Guess, position: int) -> float:
    """How many times as probable as a label the estimator's favourite is, both as `mean_with` takes them."""
    return (max(guess.probabilities) + LEAST) / (guess.probabilities[position] + LEAST)


def _is_answer(predictor: Predictor, guess: Guess, position: int) -> bool:
    """Whether a sure guess has this label: by the rounded values, as every other answer."""
    *scores, _ = to_floats(answer_auto(guess, None)[1:])
    return ranked(scores)[0] == position and scores[position] >= predictor.min_probability[AUTO]
