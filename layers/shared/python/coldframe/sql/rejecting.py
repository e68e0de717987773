"""`topic = x` with fewer texts for the encoder: rows whose estimate is far from x are rejected at once.

Predicate-based pruning, as in Raven: Karanasos et al. 2020, "Extending Relational Query Processing with
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
"""Odds that reject no row early, so that `is_topic` agrees with `topic`: docs/decisions/0075."""


def are_topic(
    predictor: Predictor,
    texts: Sequence[str | None],
    label: str,
    rejecting_odds: float = EXACT,
    deadline: Deadline = NO_DEADLINE,
) -> list[bool | None]:
    """Whether `label` is the answer of `auto` for each row; None for a row without a text.

    False where `auto` abstains.
    rejecting_odds: the estimator's odds against `label`, above which a row is rejected without the encoder.
    A finite number is quicker and may reject a row whose answer is `label`.
    Raises OutOfTime where rows are left that need the encoder.
    """
    position = predictor.manifest.labels.index(label)
    unique = distinct(texts)
    answers: dict[str, bool] = {}
    for text, guess in zip(unique, predictor.guess(unique, deadline), strict=True):
        if guess.sure:
            answers[text] = _is_answer(predictor, guess, position)
        elif odds_against(guess, position) > rejecting_odds:
            answers[text] = False
    rest = [text for text in unique if text not in answers]
    encoded = predict_column(predictor, rest, [AUTO], deadline=deadline)[AUTO]
    refuse_rushed(encoded)
    answers |= {
        text: answer is not None and answer.label == label for text, answer in zip(rest, encoded, strict=True)
    }
    return spread(texts, answers)


def odds_against(guess: Guess, position: int) -> float:
    """Ratio of the estimator's largest probability to the label's, both with the floor of `mean_with`."""
    return (max(guess.probabilities) + LEAST) / (guess.probabilities[position] + LEAST)


def _is_answer(predictor: Predictor, guess: Guess, position: int) -> bool:
    """Whether a sure guess has this label: by the rounded values, like every other answer."""
    *scores, _ = to_floats(answer_auto(guess, None)[1:])
    return ranked(scores)[0] == position and scores[position] >= predictor.min_probability[AUTO]
