"""Ids on the answers of `POST /v1/predict`."""

import secrets
import time
from collections.abc import Callable, Iterable
from random import SystemRandom

from coldframe.feedback.ids import Answer, Signer
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
    ) -> None:
        """share: of the answers that are drawn."""
        self._signer = signer
        self._share = share
        self._now = now
        self._chance = chance
        self._nonce = nonce

    def mark(self, texts: Iterable[TextAnswer], model: str, owner: str) -> None:
        """Sets `id` and `drawn` of all answers that `owner` receives from a version of a model."""
        moment_s = int(self._now())
        for text in texts:
            for head, answer in text.heads.items():
                answer.drawn = self._chance() < self._share
                best = answer.top[0]
                nonce = self._nonce(_NONCE_BYTES)
                signed = Answer(model, head, best.label, best.probability, moment_s, answer.drawn, nonce)
                answer.id = self._signer.id_of(signed, owner)
