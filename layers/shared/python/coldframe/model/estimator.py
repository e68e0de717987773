"""A cheap guess before the model: TF-IDF over the encoder's own token ids, and a linear layer.

Plain Python over a memory-mapped file: a text has a few hundred different
tokens at most, and neither numpy nor onnxruntime is needed to add them up.
The idea of answering from an estimator when it is sure enough: SneakPeek.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coldframe.errors import BundleCorrupt
from coldframe.model.files import ESTIMATOR, REBUILD, map_file

if TYPE_CHECKING:
    from coldframe.model.bundle import EstimatorFacts


class Estimator:
    """Token ids of a text to calibrated probabilities of the labels."""

    def __init__(self, folder: Path, facts: "EstimatorFacts") -> None:
        """Raises BundleMissing or BundleCorrupt when `folder` has no usable estimator."""
        self._facts = facts
        labels, tokens = len(facts.bias), facts.vocabulary
        content = memoryview(map_file(folder, ESTIMATOR))
        if len(content) != tokens * (4 + 2 * labels):
            raise BundleCorrupt(
                f"{ESTIMATOR} has {len(content)} bytes, which do not fit its manifest. {REBUILD}"
            )
        self._idf = content[: 4 * tokens].cast("f")  # (V,)
        self._weights = content[4 * tokens :].cast("h")  # (V * k,), in units of `facts.scales`
        self._labels = labels

    def predict(self, ids: Iterable[int]) -> list[float]:
        """Probability of each label. ids: the tokens of a text, without [CLS] and [SEP].

        Sublinear term frequency, smooth inverse document frequency, length 1:
        Manning, Raghavan & Schütze 2008, section 6.4.
        """
        sums = [0.0] * self._labels
        squares = 0.0
        for token, count in Counter(ids).items():
            weight = (1 + math.log(count)) * self._idf[token]
            squares += weight * weight
            row = self._weights[token * self._labels : (token + 1) * self._labels]
            sums = [total + weight * value for total, value in zip(sums, row, strict=True)]
        length = math.sqrt(squares) or 1.0
        logits = [
            (total * scale / length + bias) / self._facts.temperature
            for total, scale, bias in zip(sums, self._facts.scales, self._facts.bias, strict=True)
        ]
        return _softmax(logits)

    def is_sure(self, probabilities: Sequence[float], ids: Iterable[int]) -> bool:
        """Whether this guess may be the answer. ids: those that it was made of."""
        return max(probabilities) > self._facts.threshold and self.knows_enough(ids)

    def knows_enough(self, ids: Iterable[int]) -> bool:
        """Whether these tokens are enough to answer alone from, as far as training saw them."""
        wanted = self._facts.min_tokens
        return not wanted or sum(self._idf[token] < self._facts.unseen_idf for token in set(ids)) >= wanted


def _softmax(logits: Sequence[float]) -> list[float]:
    highest = max(logits)
    powers = [math.exp(logit - highest) for logit in logits]
    total = sum(powers)
    return [power / total for power in powers]
