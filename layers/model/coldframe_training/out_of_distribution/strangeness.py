"""How strange texts look to a trained model, by every measure there is."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coldframe.model.bundle import EstimatorFacts
from coldframe.model.heads import Centroids, share_more_usual
from coldframe_training.embeddings.matrices import Embeddings, to_vectors
from coldframe_training.report import Strangeness
from coldframe_training.thresholds.estimator_outputs import Guesses

_KEPT = 200  # values of validation rows: a share is then right within 0.25 %
_SCORES = ("embedding", "tokens", "auto")


class Seen(NamedTuple):
    """Texts as a model sees them: embeddings (n, d), guesses of the estimator, answers of `auto` (n, k)."""

    embeddings: Embeddings
    guessed: Guesses
    answers: NDArray[np.floating]


def strangeness(
    held_out: Seen, others: Seen, facts: EstimatorFacts, centroids: Centroids
) -> dict[str, Strangeness]:
    """The measures of held-out rows and of texts of other kinds, by name."""
    of_others = measures(others, facts, centroids)
    scores = measures(held_out, facts, centroids)
    return {name: Strangeness(rows, of_others[name], name in _SCORES) for name, rows in scores.items()}


def measures(seen: Seen, facts: EstimatorFacts, centroids: Centroids) -> dict[str, NDArray[np.floating]]:
    """How strange each text is, 0 to 1, (n,), by the name of the measure.

    The score of `auto` is that of who answers: by the tokens, or by the embedding. Of a probability, what is
    missing to 1 counts.
    """
    by_tokens = np.array([share_more_usual(value, facts.usual) for value in seen.guessed.strangeness])
    by_embedding = np.array(centroids.out_of_distribution(to_vectors(seen.embeddings)))
    return {
        "embedding": by_embedding,
        "tokens": by_tokens,
        "auto": np.where(seen.guessed.sure(facts.threshold), by_tokens, by_embedding),
        "probability of auto": 1 - seen.answers.max(axis=1),
        "probability of estimator": 1 - seen.guessed.probabilities.max(axis=1),
    }


def thin(strangeness: NDArray[np.floating]) -> NDArray[np.floating]:
    """Ascending values, at most 200, evenly spread over the ranks of the rows; at least one row."""
    ascending = np.sort(strangeness)
    count = min(_KEPT, len(ascending))
    middles = (np.arange(count) + 0.5) / count  # with one value per row, each stands for its own rank
    return ascending[(middles * len(ascending)).astype(np.int64)]
