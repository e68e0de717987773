"""Shadows: a second arm answers the same texts, and nobody waits for it past a deadline."""

import math
import threading
import time
from collections.abc import Mapping, Sequence

from msgspec import Struct

from coldframe.errors import RequestError
from coldframe.experiments.arms import ServedArm
from coldframe.model.estimator import AnswerSource
from coldframe.pipeline.answers import Prediction
from coldframe.timing import Deadline, MovingAverage, StageTimes
from coldframe.vectors import Vector, ranked, to_floats

_FIRST_MS = 5.0  # expected time of a text, until one is measured
_MARGIN = 2.0  # of the time that a shadow is expected to take
_AMPLE, _AMPLE_S = 20.0, 1.0  # times the expected time, and seconds: then no thread is needed
_KEPT_S = 0.002  # of the caller's time, for writing the answer


class Shadowed(Struct, frozen=True):
    """A shadow's answers. labels: None where it abstains. confidence: of each text's best label."""

    labels: list[str | None]
    confidence: list[float]
    ms: float


class NotShadowed(Struct, frozen=True):
    """No answer: `skipped` for lack of time, or `errors` of the arm. The word is the count's name."""

    why: str


_SKIPPED, _FAILED = NotShadowed("skipped"), NotShadowed("errors")


class Shadows:
    """Answers of shadows. Safe for threads.

    With ample time a shadow works in the request's thread, else in a thread of its own. There a late shadow
    ends alone; until then, no other shadow begins.
    """

    def __init__(self) -> None:
        self._average_ms: dict[str, MovingAverage] = {}
        self._is_late = threading.Event()

    def answer(
        self,
        arm: ServedArm,
        texts: Sequence[str],
        prediction: Prediction,
        encoder: str,
        use_cache: bool,
        deadline: Deadline,
    ) -> Shadowed | NotShadowed:
        """The arm's answers, or why there are none. Never raises.

        encoder: version of the encoder whose embeddings `prediction` has.
        """
        average = self._average_ms.setdefault(arm.name, MovingAverage(_FIRST_MS))
        left_s = _left_s(deadline) - _KEPT_S
        if self._is_late.is_set() or left_s * 1e3 < _MARGIN * average.value * len(texts):
            average.fade()
            return _SKIPPED
        embeddings = prediction.vectors if arm.predictor.encoder.version == encoder else {}
        work = _Work(arm, texts, embeddings, use_cache, deadline, average)
        if left_s > max(_AMPLE_S, _AMPLE * average.value * len(texts) / 1e3):
            work.run()  # a thread costs more than a head
            return work.result
        thread = threading.Thread(target=work.run, name="shadow", daemon=True)
        thread.start()
        thread.join(left_s)
        if thread.is_alive():
            self._abandon(thread)
            return _SKIPPED
        return work.result

    def _abandon(self, thread: threading.Thread) -> None:
        self._is_late.set()

        def wait() -> None:
            thread.join()
            self._is_late.clear()

        threading.Thread(target=wait, name="late-shadow", daemon=True).start()


class _Work:
    """One shadow's work. result: valid once `run` has returned."""

    def __init__(
        self,
        arm: ServedArm,
        texts: Sequence[str],
        embeddings: Mapping[str, Vector],
        use_cache: bool,
        deadline: Deadline,
        average: MovingAverage,
    ) -> None:
        self._arm = arm
        self._texts = texts
        self._embeddings = embeddings
        self._use_cache = use_cache
        self._deadline = deadline
        self._average = average
        self.result: Shadowed | NotShadowed = _SKIPPED

    def run(self) -> None:
        """Answers the texts."""
        times = StageTimes()
        try:
            arm = self._arm
            prediction = arm.predictor.predict(
                self._texts, [arm.head], self._use_cache, self._deadline, self._embeddings
            )
            if AnswerSource.RUSHED not in prediction.sources and prediction.is_whole:
                self.result = _answers(prediction, arm, times.total_ms())
        except RequestError:  # too little time, or a caller that has left
            self.result = _SKIPPED
        except Exception:  # a broken model, or too little memory: the caller's answer is there already
            self.result = _FAILED
        self._average.add(times.total_ms() / len(self._texts))


def _answers(prediction: Prediction, arm: ServedArm, ms: float) -> Shadowed:
    predictor = arm.predictor
    least = predictor.min_probability[arm.head] if arm.least is None else arm.least
    rows = [to_floats(row)[:-1] for row in prediction.answers[arm.head]]
    best = [ranked(values)[0] for values in rows]
    confidence = [values[place] for values, place in zip(rows, best, strict=True)]
    names = predictor.manifest.labels
    labels = [names[i] if p >= least else None for i, p in zip(best, confidence, strict=True)]
    return Shadowed(labels, confidence, ms)


def _left_s(deadline: Deadline) -> float:
    """Time left for the caller, within the server's own limit if it states none."""
    caller = deadline.caller
    due_s = math.inf if caller is None else caller.due_s - time.monotonic()
    return min(deadline.remaining_s(), due_s)
