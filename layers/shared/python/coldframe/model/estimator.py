"""A cheap guess before the encoder, and the head `auto`, which returns the guess where it is sure.

The guess is TF-IDF over the encoder's own token ids, and a linear layer. Where it is not sure,
`auto` is the geometric mean of the guess and the partner head.

Weights are a memory-mapped file; a graph of `coldframe.graphs` adds up the weights of a text's tokens.
Source of the idea to answer from an estimator that is sure enough: SneakPeek.
"""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from coldframe.errors import BundleCorrupt
from coldframe.graphs.graph import GraphError, Tensor
from coldframe.model.files import AUTO, ENSEMBLE, ESTIMATOR, REBUILD, map_file
from coldframe.model.heads import open_head_graph, share_more_usual
from coldframe.timing import Deadline
from coldframe.vectors import Vector, to_floats, to_vector

if TYPE_CHECKING:
    from coldframe.model.bundle import EstimatorFacts
    from coldframe.schemas import By

LEAST = 0.001  # least probability of a label for guess and partner


class TextEstimator(Protocol):
    """An estimator. Safe for threads."""

    def guess(self, ids: Sequence[int], deadline: Deadline) -> "Guess": ...

    def token_evidence(self, ids: Iterable[int]) -> dict[int, list[float]]: ...

    def is_settled(self, answer: Sequence[float]) -> bool: ...

    def count_unknown(self, ids: Iterable[int]) -> int: ...


class Estimator:
    """Token ids of a text to calibrated probabilities of the labels. Safe for threads: read only."""

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
        weights = Tensor("h", (tokens, labels), content[4 * tokens :])
        try:
            self._graph = open_head_graph("estimator", "sums", "d", {"weights": weights})
        except GraphError as exc:
            raise BundleCorrupt(f"{ESTIMATOR} cannot be used: {exc}. {REBUILD}") from exc

    @property
    def idf(self) -> "memoryview[float]":
        """Inverse document frequency of each token, (V,)."""
        return self._idf

    @property
    def weights(self) -> "memoryview[int]":
        """Weight of each token for each label, (V * k,), in units of the manifest's scales."""
        return self._weights

    def guess(self, ids: Sequence[int], deadline: Deadline) -> "Guess":
        """The guess for a text of these tokens. Raises the errors of `Deadline.check`."""
        deadline.check()
        evidence = self.evidence(ids)
        probabilities = self.probabilities(evidence)
        strangeness = self.out_of_distribution(evidence)
        temperatures = self._facts.answer_temperatures or UNTEMPERED
        return Guess(probabilities, self.is_sure(probabilities, ids), strangeness, temperatures)

    def predict(self, ids: Iterable[int]) -> list[float]:
        """Probability of each label. ids: the tokens of a text, without [CLS] and [SEP]."""
        return self.probabilities(self.evidence(ids))

    def evidence(self, ids: Iterable[int]) -> list[float]:
        """Evidence of the tokens for and against each label, before bias and temperature.

        Sublinear term frequency, smooth inverse document frequency, length 1:
        Manning, Raghavan & Schütze 2008, section 6.4.
        """
        counts = Counter(ids)
        factors = [(1 + math.log(count)) * self._idf[token] for token, count in counts.items()]
        if not counts:
            return [0.0] * self._labels
        size = (len(counts),)
        inputs = {
            "tokens": Tensor("q", size, array("q", counts)),
            "factors": Tensor("d", size, array("d", factors)),
        }
        sums = array("d", self._graph.run(inputs, (self._labels,)))  # each token's weights times its factor
        squares = 0.0
        for factor in factors:  # `sum` rounds differently in Python 3.12
            squares += factor * factor
        length = math.sqrt(squares) or 1.0
        return [total * scale / length for total, scale in zip(sums, self._facts.scales, strict=True)]

    def token_evidence(self, ids: Iterable[int]) -> dict[int, list[float]]:
        """Evidence of each different token for each label. Their sums are `evidence`, up to rounding."""
        counts = Counter(ids)
        factors = {token: (1 + math.log(count)) * self._idf[token] for token, count in counts.items()}
        length, labels = math.hypot(*factors.values()) or 1.0, self._labels
        return {
            token: [
                weight * scale * factor / length
                for weight, scale in zip(
                    self._weights[token * labels : (token + 1) * labels], self._facts.scales, strict=True
                )
            ]
            for token, factor in factors.items()
        }

    def probabilities(self, evidence: Iterable[float]) -> list[float]:
        """Probability of each label, from the evidence of a text."""
        facts = self._facts
        return _softmax(
            [(weight + bias) / facts.temperature for weight, bias in zip(evidence, facts.bias, strict=True)]
        )

    def out_of_distribution(self, evidence: Sequence[float]) -> float:
        """Share of the validation rows that are less unusual than a text, by its tokens."""
        return share_more_usual(strangeness_of(evidence), self._facts.usual)

    def is_sure(self, probabilities: Sequence[float], ids: Iterable[int]) -> bool:
        """Whether this guess may be the answer. ids: the tokens it was computed from."""
        return max(probabilities) > self._facts.threshold and self.knows_enough(ids)

    def is_settled(self, answer: Sequence[float]) -> bool:
        """Whether `auto` stops reading. answer: the mean of guess and partner after the windows read."""
        second, best = sorted(answer)[-2:]
        return best - second > self._facts.settled_margin

    def count_unknown(self, ids: Iterable[int]) -> int:
        """Number of these tokens that training did not see; 0 for a model that does not record them."""
        unseen_idf = self._facts.unseen_idf
        return sum(self._idf[token] >= unseen_idf for token in ids) if unseen_idf else 0

    def knows_enough(self, ids: Iterable[int]) -> bool:
        """Whether training saw enough of these tokens for an answer by the estimator alone."""
        least = self._facts.min_tokens
        return not least or sum(self._idf[token] < self._facts.unseen_idf for token in set(ids)) >= least


def strangeness_of(evidence: Sequence[float]) -> float:
    """Strangeness of a text by its tokens: minus the length of the estimator's evidence, (k,).

    Tokens that training did not see, or saw under every label, add no evidence.
    """
    return -math.hypot(*evidence)


def _softmax(logits: Sequence[float]) -> list[float]:
    highest = max(logits)
    powers = [math.exp(logit - highest) for logit in logits]
    total = sum(powers)
    return [power / total for power in powers]


UNTEMPERED = (1.0, 1.0)


class Guess(NamedTuple):
    """The estimator's guess for a text, and whether it may be the answer.

    out_of_distribution: share of the validation rows that are less unusual, 0 to 1: 0.99 means that the text
    is stranger than 99 % of them. temperatures: for an answer by the estimator alone, and with the partner
    head.
    """

    probabilities: list[float]
    sure: bool
    out_of_distribution: float
    temperatures: tuple[float, float] = UNTEMPERED


class AnswerSource(IntEnum):
    """The part that gave an answer of `auto`. The numbers are stored: they never change their meaning."""

    ESTIMATOR = 0
    ENSEMBLE = 1
    RUSHED = 2
    """The estimator below its threshold, because there was no time for the encoder. Never stored."""
    RUSHED_ENSEMBLE = 3
    """Both, after fewer windows than a settled answer needs, because time was short. Never stored."""

    @property
    def by(self) -> "By":
        """Name in the reply."""
        is_both = self in (AnswerSource.ENSEMBLE, AnswerSource.RUSHED_ENSEMBLE)
        return "ensemble" if is_both else "estimator"

    @property
    def is_rushed(self) -> bool:
        """Whether more time would have given another answer."""
        return self >= AnswerSource.RUSHED


def answer_auto(guess: Guess, partner: Vector | None, is_cut: bool = False) -> bytes:
    """The answer of `auto` for one text: a byte, its source, and the answer (k + 1,).

    partner: answer (k + 1,) of the partner head; None where it is not needed or there is no time for it.
    is_cut: the partner read fewer windows than a settled answer needs.
    """
    alone, together = guess.temperatures
    if partner is None:
        source = AnswerSource.ESTIMATOR if guess.sure else AnswerSource.RUSHED
        return bytes([source]) + to_vector([*temper(guess.probabilities, alone), guess.out_of_distribution])
    *others, out_of_distribution = to_floats(partner)
    answer = [*temper(mean_with(guess, others), together), out_of_distribution]
    return bytes([AnswerSource.RUSHED_ENSEMBLE if is_cut else AnswerSource.ENSEMBLE]) + to_vector(answer)


def mean_with(guess: Guess, partner: Sequence[float]) -> list[float]:
    """Geometric mean of guess and partner head, (k,), scaled to sum 1.

    A label that either of them finds improbable is improbable, and none is impossible: some heads return 0
    after few examples. Logarithmic opinion pool, Genest & Zidek 1986. The sum is exact, so that training gets
    the same bits.
    """
    roots = [
        math.sqrt((own + LEAST) * (other + LEAST))
        for own, other in zip(guess.probabilities, partner, strict=True)
    ]
    total = math.fsum(roots)
    return [root / total for root in roots]


def temper(probabilities: list[float], temperature: float) -> list[float]:
    """Probabilities at another temperature: in the same order, surer below 1.

    Source: Guo et al. 2017, On Calibration of Modern Neural Networks, section 4.2.
    """
    if temperature == 1:
        return probabilities
    highest = max(probabilities)
    powers = [(probability / highest) ** (1 / temperature) for probability in probabilities]
    total = math.fsum(powers)
    return [power / total for power in powers]


def is_lasting(head: str, answer: bytes) -> bool:
    """Whether the cache may keep an answer: not an answer given for lack of time."""
    return head != AUTO or not source_of(answer).is_rushed


def source_of(answer: bytes) -> AnswerSource:
    """Source of an answer of `auto` from `answer_auto`."""
    return AnswerSource(answer[0])


def split_answers(rows: Mapping[str, list[bytes]]) -> tuple[dict[str, list[Vector]], list[AnswerSource]]:
    """Answers (k + 1,) of all rows by head, and the sources of the answers of `auto`, if requested."""
    answers = rows.get(AUTO, [])
    bare = {AUTO: [answer[1:] for answer in answers]} if answers else {}
    return {**rows, **bare}, [source_of(answer) for answer in answers]


def sources_of(
    head: str, answers: int, sources: Sequence[AnswerSource], members: Sequence[str]
) -> Sequence[AnswerSource | None]:
    """Source of each of a head's answers: None where `auto`, whose `sources` these are, has no part in it.

    members: heads whose mean `ensemble` is.
    """
    has_part = head == AUTO or (head == ENSEMBLE and AUTO in members)
    return sources if has_part and sources else [None] * answers
