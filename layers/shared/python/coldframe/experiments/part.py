"""A request's part in an experiment: its arm, the shadow's answers, and the counts of both."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct, UnsetType

from coldframe.errors import Invalid, RequestError, TooLarge
from coldframe.experiments.arms import Lineup, ServedArm
from coldframe.experiments.assignment import choose_arm
from coldframe.experiments.document import HEADER
from coldframe.experiments.shadow import NotShadowed, Shadows
from coldframe.experiments.tally import Tally, bucket_of
from coldframe.feedback.ids import Trial
from coldframe.pipeline.answers import Prediction
from coldframe.pipeline.predictor import Predictor
from coldframe.schemas import ExperimentMark, PredictRequest, TextAnswer
from coldframe.timing import Deadline

_MILLION = 1_000_000


class Caller(Protocol):
    """Facts of a request about its caller."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def principal(self) -> str: ...

    @property
    def request_id(self) -> str: ...

    @property
    def has_ids(self) -> bool: ...


class Part:
    """One request of an experiment. Not shared between threads.

    arm: the one that answers. shadow: answers, too, and nobody sees its answers.
    """

    def __init__(
        self,
        lineup: Lineup,
        arm: ServedArm,
        shadow: ServedArm | None,
        subject: str,
        tally: Tally,
        shadows: Shadows,
    ) -> None:
        self._lineup = lineup
        self.arm = arm
        self._shadow = shadow
        self._subject = subject
        self._tally = tally
        self._shadows = shadows
        self._others: list[str | None] | None = None
        self._is_counted = lineup.run.state == "running"
        self._is_bandit = lineup.run.experiment.kind == "bandit"

    @property
    def predictor(self) -> Predictor:
        """The model that answers."""
        return self.arm.predictor

    @property
    def heads(self) -> list[str]:
        """The head that answers."""
        return [self.arm.head]

    @property
    def mark(self) -> ExperimentMark:
        """The answer's note for its caller."""
        return ExperimentMark(self._lineup.run.experiment.name, self.arm.name)

    def predict(self, texts: Sequence[str], body: PredictRequest, deadline: Deadline) -> Prediction:
        """The arm's prediction, and its threshold for the request. The first arm answers for a broken one.

        Raises the errors of `Predictor.predict`.
        """
        use_cache, requested = body.cache, body.min_probability
        self._set_threshold(body)
        try:
            return self.predictor.predict(texts, self.heads, use_cache, deadline)
        except (Invalid, TooLarge):
            raise  # the caller's error, whichever arm answers
        except Exception as exc:
            self._count(self.arm, {"answers": 1, "errors": 1}, self._subject)
            if isinstance(exc, RequestError) or self.arm is self._lineup.arms[0]:
                raise
        self.arm, self._is_counted = self._lineup.arms[0], False
        body.min_probability = requested
        self._set_threshold(body)
        return self.predictor.predict(texts, self.heads, use_cache, deadline)

    def _set_threshold(self, body: PredictRequest) -> None:
        """Makes the arm's threshold the request's."""
        if self.arm.least is not None:
            body.min_probability = self.arm.least

    def observe(
        self,
        texts: Sequence[str],
        prediction: Prediction,
        answers: Sequence[TextAnswer],
        body: PredictRequest,
        deadline: Deadline,
    ) -> None:
        """Counts the answers, and lets the shadow answer the texts.

        Where an answer came from the cache, neither time nor agreement is counted.
        """
        if not self._is_counted:
            return
        rows = [answer.heads[self.arm.head] for answer in answers]
        numbers = {
            "answers": 1,
            "texts": len(rows),
            "abstained": sum(answer.abstained for answer in rows),
            "confidence_ppm": sum(round(answer.probability * _MILLION) for answer in rows),
        }
        cache = prediction.usage.cache
        if cache.l1 + cache.l2:
            numbers["cached"] = 1
        elif not cache.embedding:
            numbers[bucket_of(prediction.times.total_ms())] = 1
        self._count(self.arm, numbers, self._subject)
        if self._shadow is not None and not cache.l1 + cache.l2:
            labels = [answer.label for answer in rows]
            with prediction.times.stage("shadow"):
                self._answer_too(self._shadow, texts, prediction, labels, body.cache, deadline)

    def trial(self, text: int, label: str | None) -> Trial | None:
        """The part of an answer's id about the experiment. label: the answer's; None where it abstained.

        None where a label would say nothing: a shadow's pairs need both answers.
        """
        if not self._is_counted or (self._lineup.run.experiment.kind == "shadow" and self._others is None):
            return None
        others = self._others
        run, name = self._lineup.run.run, self._lineup.name
        share = self._lineup.shares[self._lineup.arms.index(self.arm)] if self._is_bandit else 0.0
        other = others[text] if others else None
        return Trial(run, name, self.arm.name, label, others is not None, other, share)

    def _answer_too(
        self,
        shadow: ServedArm,
        texts: Sequence[str],
        prediction: Prediction,
        labels: list[str | None],
        use_cache: bool,
        deadline: Deadline,
    ) -> None:
        """Compares the shadow's labels with the answer's."""
        encoder = self.predictor.encoder.version
        other = self._shadows.answer(shadow, texts, prediction, encoder, use_cache, deadline)
        if isinstance(other, NotShadowed):
            self._count(shadow, {"answers": 1, other.why: 1})
            return
        self._others = other.labels
        numbers = {
            "answers": 1,
            "texts": len(texts),
            "compared": len(texts),
            "agreed": sum(one == two for one, two in zip(labels, other.labels, strict=True)),
            "abstained": other.labels.count(None),
            "confidence_ppm": sum(round(value * _MILLION) for value in other.confidence),
            bucket_of(other.ms): 1,
        }
        self._count(shadow, numbers)

    def _count(self, arm: ServedArm, numbers: Mapping[str, int], subject: str = "") -> None:
        if self._is_counted:
            self._tally.add(self._lineup, arm.name, numbers, subject)


class Chooser(Struct, frozen=True):
    """Chooses the arm of each request. Safe for threads."""

    tally: Tally
    shadows: Shadows

    def choose(self, lineup: Lineup, request: Caller, body: PredictRequest) -> Part | None:
        """The part of a request; None for a request that is not in the experiment.

        A request that names a model, heads or a threshold, and one of a batch, is never in an experiment.
        """
        if (
            not request.has_ids
            or not isinstance(body.heads, UnsetType)
            or not isinstance(body.model, UnsetType)
        ):
            return None
        if lineup.has_thresholds and not isinstance(body.min_probability, UnsetType):
            return None
        run = lineup.run
        if run.state == "promoted":
            winner = next(arm for arm in lineup.arms if arm.name == run.winner)
            return Part(lineup, winner, None, "", self.tally, self.shadows)
        subject = _subject_of(run.experiment.subject, request, body)
        place = choose_arm(run.key.encode(), run.run, subject, lineup.shares)
        if place is None:
            self.tally.add(lineup, lineup.arms[0].name, {"without_subject": 1})
            return None
        first = lineup.arms[0]
        if run.experiment.kind == "shadow":
            return Part(lineup, first, lineup.arms[1] if place else None, subject, self.tally, self.shadows)
        return Part(lineup, lineup.arms[place], None, subject, self.tally, self.shadows)


def _subject_of(kind: str, request: Caller, body: PredictRequest) -> str:
    if kind == "caller":
        return request.principal
    if kind == "field":
        return "" if isinstance(body.subject, UnsetType) else body.subject
    if kind == "request":
        return request.request_id
    return request.headers.get(kind.removeprefix(HEADER), "")
