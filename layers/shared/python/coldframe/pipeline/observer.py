"""Observer: answers of `auto` as the predictor computes them, counted for the monitor."""

import os
import time
from collections.abc import Callable, Mapping, Sequence

from coldframe.digests import blake2b
from coldframe.model.bundle import EncoderManifest, Manifest
from coldframe.model.estimator import AnswerSource, source_of
from coldframe.model.files import AUTO
from coldframe.model.tokenizer import Window, content_tokens
from coldframe.monitoring.recorder import INTERVAL_S, Answer, Projections, Recorder
from coldframe.monitoring.sketch import Sketch
from coldframe.vectors import Vector, to_floats

_SOURCE_BYTES = 1
"""An answer of `auto` begins with its source."""
_PROJECTED_OF = 4


class Observer:
    """Counts the answers of one model. Safe for threads.

    Only computed answers count: a repeated text, which the cache answers, says nothing new about the texts.
    Rushed answers do not count: they depend on the time that was left. Of the embeddings every fourth counts,
    because its projections take longer than all the rest.
    """

    def __init__(
        self,
        manifest: Manifest,
        encoder: EncoderManifest,
        count_unknown: Callable[[Sequence[int]], int],
        count_fragments: Callable[[Sequence[int]], int],
        now: Callable[[], float] = time.time,
    ) -> None:
        """count_unknown: number of tokens that training did not see.

        count_fragments: number of tokens that continue a word.
        """
        self._manifest = manifest
        self._projections = Projections(encoder.version, encoder.facts.dimension)
        self._count_unknown = count_unknown
        self._count_fragments = count_fragments
        self._now = now
        self._number = 0  # of answers; two threads may lose one, which changes nothing
        self.renew()

    def renew(self) -> None:
        """Starts under a new name: after the restore of a snapshot, environments must not share one."""
        name = blake2b(os.urandom(16), digest_size=8).hexdigest()
        self._recorder = Recorder(
            self._manifest.version, AUTO, len(self._manifest.labels), self._projections, name, self._now()
        )

    def observe(
        self,
        answers: Mapping[tuple[str, str], Vector],
        windows: Mapping[str, Sequence[Window]],
        embeddings: Mapping[str, Vector],
    ) -> None:
        """Counts the answers of `auto` among `answers`, by head and text.

        windows: of each of these texts. embeddings: new ones, from the encoder.
        """
        for (head, text), answer in answers.items():
            if head != AUTO or (source := source_of(answer)).is_rushed:
                continue
            *probabilities, strangeness = to_floats(answer[_SOURCE_BYTES:])
            best = max(range(len(probabilities)), key=probabilities.__getitem__)
            ids = content_tokens(windows[text])
            self._number += 1
            is_embedded = source is AnswerSource.ENSEMBLE and len(windows[text]) == 1
            is_projected = is_embedded and self._number % _PROJECTED_OF == 0
            self._recorder.add(
                Answer(
                    best,
                    probabilities[best],
                    len(ids),
                    self._count_unknown(ids),
                    strangeness,
                    embeddings.get(text) if is_projected else None,
                    self._count_fragments(ids),
                )
            )

    def hand_over(self, interval_s: float = INTERVAL_S) -> Sketch | None:
        """The answers of the last interval; None before it is over, and without answers."""
        return self._recorder.hand_over(self._now(), interval_s)
