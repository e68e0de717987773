"""The head `ensemble`: the weighted mean of its members' probabilities, the heads and `auto`.

Training chooses the weights on validation rows: a linear opinion pool, Stone 1961. The members answer as they
do by name, from the cache or not; the mean itself is not cached, so answers of different members never mix.
Within a stated budget members are left out that do not fit in, as in Cocktail, Gunasekaran et al. 2022, and
Rafiki, Wang et al. 2018. Imported only where a request names the head, and by training.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from operator import mul
from typing import Protocol, TypeAlias

from msgspec.structs import replace

from coldframe.cache.cache import CacheLookup
from coldframe.errors import OutOfTime, Overloaded
from coldframe.model.bundle import EnsembleFacts, EstimatorFacts, Manifest
from coldframe.model.files import AUTO, ENSEMBLE
from coldframe.model.model import Model
from coldframe.model.tokenizer import Window
from coldframe.pipeline.answers import Prediction
from coldframe.timing import Deadline
from coldframe.vectors import Vector, to_floats, to_vector

Fit: TypeAlias = Callable[[Sequence[str], Mapping[str, Sequence[Window]], CacheLookup], list[str]]
"""Heads to ask, of texts that lack an answer, their windows, and what the cache has."""


class OfHeads(Protocol):
    """A predictor: its model, and answers by single heads as `Predictor.predict` gives them."""

    model: Model
    manifest: Manifest

    def predict(
        self,
        texts: Sequence[str],
        heads: Sequence[str],
        use_cache: bool,
        deadline: Deadline,
        embeddings: Mapping[str, Vector] | None = None,
        fit: Fit | None = None,
    ) -> Prediction: ...


def predict_ensemble(
    predictor: OfHeads,
    facts: EnsembleFacts,
    texts: Sequence[str],
    heads: Sequence[str],
    use_cache: bool,
    deadline: Deadline,
    embeddings: Mapping[str, Vector] | None,
) -> Prediction:
    """Answers by `heads`, `ensemble` among them; the other parameters and errors are those of `predict`.

    Where the encoder turns out to be late for a stated budget, the member `auto` answers alone.
    """
    others = [head for head in heads if head != ENSEMBLE]
    fitting = FittingMembers(facts.weights, others, predictor.model, predictor.manifest.estimator, deadline)
    names = list(dict.fromkeys([*others, *facts.weights]))
    fit = fitting.choose if deadline.is_budget else None
    try:
        prediction = predictor.predict(texts, names, use_cache, deadline, embeddings, fit)
    except (OutOfTime, Overloaded):
        if fit is None or AUTO not in facts.weights or set(others) - {AUTO}:
            raise
        fitting.members = [AUTO]
        prediction = predictor.predict(texts, [AUTO], use_cache, deadline, embeddings)
    rows = mean_answers(prediction.answers, {name: facts.weights[name] for name in fitting.members})
    answers = {head: rows if head == ENSEMBLE else prediction.answers[head] for head in heads}
    is_whole = len(fitting.members) == len(facts.weights)
    return replace(prediction, answers=answers, members=tuple(fitting.members), is_whole=is_whole)


def mean_answers(answers: Mapping[str, Sequence[Vector]], weights: Mapping[str, float]) -> list[Vector]:
    """Weighted mean of the answers (k + 1,) of the members in `weights`, row by row.

    The out-of-distribution score is that of the last member: all heads have one, and `auto` is the first.
    Sums are exact, so the order of the members changes no bit; one member's mean is its own answer.
    """
    total = math.fsum(weights.values())
    shares = [weight / total for weight in weights.values()]
    columns = zip(*(answers[name] for name in weights), strict=True)
    return [_mean([to_floats(row) for row in rows], shares) for rows in columns]


def _mean(rows: Sequence[Sequence[float]], shares: Sequence[float]) -> Vector:
    *labels, scores = zip(*rows, strict=True)
    return to_vector([*(math.fsum(map(mul, shares, values)) for values in labels), scores[-1]])


class FittingMembers:
    """The members of one request's ensemble: all of them, until `choose` leaves some out."""

    def __init__(
        self,
        weights: Mapping[str, float],
        others: Sequence[str],
        model: Model,
        facts: EstimatorFacts,
        deadline: Deadline,
    ) -> None:
        """others: heads that the request names besides; they always answer."""
        self.members = list(weights)
        self._weights = weights
        self._others = others
        self._model = model
        self._partner = facts.partner
        self._deadline = deadline

    def choose(
        self, missing: Sequence[str], windows: Mapping[str, Sequence[Window]], lookup: CacheLookup
    ) -> list[str]:
        """Heads to ask: the members that fit into the time left, the least time per weight first.

        missing: texts that lack an answer by some head. windows: of the texts that may need the encoder.
        All heads but `auto` share the encoder's time. Where that does not fit in, `auto` alone is left, which
        can answer without the encoder. One member always answers.
        """
        unknown = [text for text in missing if text not in lookup.embeddings]
        encode_s = self._model.encoder.expected_s(sum(len(row) for text in unknown for row in windows[text]))
        left_s = self._deadline.remaining_s()
        times_s = {name: self._time_s(name, missing, lookup) for name in self._weights}
        if encode_s > left_s and AUTO in self._weights:
            members = [AUTO]
        else:
            members = cheapest(times_s, self._weights, left_s - encode_s)
        self.members = [name for name in self._weights if name in members]
        return list(dict.fromkeys([*self._others, *self.members]))

    def _time_s(self, name: str, missing: Sequence[str], lookup: CacheLookup) -> float:
        """Time of a member for the texts whose answer is not in the cache, without the encoder's."""
        if name in self._others:
            return 0.0
        texts = sum((name, text) not in lookup.predictions for text in missing)
        head = self._partner if name == AUTO else name
        return self._model.heads.expected_s(head, texts) if texts else 0.0


def cheapest(times_s: Mapping[str, float], weights: Mapping[str, float], left_s: float) -> list[str]:
    """Members that fit into the time left, the least time per weight first; at least the first one."""
    members: list[str] = []
    for name in sorted(weights, key=lambda name: (times_s[name] / weights[name], -weights[name])):
        if not members or times_s[name] <= left_s:
            members.append(name)
            left_s -= times_s[name]
    return members
