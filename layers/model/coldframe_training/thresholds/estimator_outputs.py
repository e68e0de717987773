"""Outputs of the served estimator."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coldframe.model.bundle import EstimatorFacts
from coldframe.model.estimator import Estimator, strangeness_of

_SMALLEST = np.finfo(np.float64).tiny

Ids = list[list[int]]
"""Token ids of each text, without [CLS] and [SEP]."""


class Guesses(NamedTuple):
    """Outputs of the served estimator for documents.

    known: whether a document has enough tokens that training saw, (n,). The estimator does not answer
    other documents alone, however sure it is. strangeness: by the document's tokens, (n,).
    """

    probabilities: NDArray[np.float64]  # (n, k)
    known: NDArray[np.bool_]
    strangeness: NDArray[np.float64]

    def sure(self, threshold: float) -> NDArray[np.bool_]:
        """Mark documents that the estimator may answer alone, (n,)."""
        above: NDArray[np.bool_] = self.probabilities.max(axis=1) > threshold
        return above & self.known

    def at(self, temperature: float) -> "Guesses":
        """These guesses, made at temperature 1, as they are at another; equal up to rounding."""
        logits = np.log(np.maximum(self.probabilities, _SMALLEST)) / temperature
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return self._replace(probabilities=powers / powers.sum(axis=1, keepdims=True))


def guesses(facts: EstimatorFacts, documents: Ids, folder: Path) -> Guesses:
    """Run the estimator in `folder` on each document."""
    estimator = Estimator(folder, facts)
    evidence = [estimator.evidence(ids) for ids in documents]
    return Guesses(
        np.array([estimator.probabilities(said) for said in evidence]),
        np.array([estimator.knows_enough(ids) for ids in documents], dtype=bool),
        np.array([strangeness_of(said) for said in evidence]),
    )
