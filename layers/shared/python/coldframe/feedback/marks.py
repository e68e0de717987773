"""Ids on the answers of `POST /v1/predict`."""

import secrets
import time
from collections.abc import Callable, Sequence
from random import SystemRandom

from coldframe.feedback.ids import Answer, Signer, Trial
from coldframe.model.tokenizer import normalise
from coldframe.schemas import TextAnswer
from coldframe.timing import Clock

_NONCE_BYTES = 16
_CHANCE = SystemRandom().random


class Marker:
    """Gives each answer its id. Chance alone draws the answers to be labelled, never the text.

    now: seconds since 1970. chance: a number from 0 to 1 for each answer. nonce: random bytes.
    """

    def __init__(
        self,
        signer: Signer,
        share: float,
        now: Clock = time.time,
        chance: Callable[[], float] = _CHANCE,
        nonce: Callable[[int], bytes] = secrets.token_bytes,
        has_digests: bool = False,
    ) -> None:
        """share: of the answers that are drawn. has_digests: ids name their texts, to be stored later."""
        self._signer = signer
        self._share = share
        self._now = now
        self._chance = chance
        self._nonce = nonce
        self._has_digests = has_digests

    def mark(
        self,
        texts: Sequence[str],
        answers: Sequence[TextAnswer],
        name: str,
        version: str,
        owner: str,
        trial_of: Callable[[int, str | None], Trial | None] | None = None,
    ) -> None:
        """Sets `id` and `drawn` of all answers that `owner` receives. name, version: of the model.

        trial_of: the experiment of a text's answer, by its index and label; None: there is none.
        """
        moment_s = int(self._now())
        for text, text_answer in zip(texts, answers, strict=True):
            digest = self._signer.digest(normalise(text)) if self._has_digests else b""
            for head, answer in text_answer.heads.items():
                answer.drawn = self._chance() < self._share
                best = answer.top[0]
                nonce = self._nonce(_NONCE_BYTES)
                trial = None if trial_of is None else trial_of(text_answer.index, answer.label)
                signed = Answer(
                    version,
                    head,
                    best.label,
                    best.probability,
                    moment_s,
                    answer.drawn,
                    nonce,
                    name,
                    digest,
                    trial,
                )
                answer.id = self._signer.id_of(signed, owner)
