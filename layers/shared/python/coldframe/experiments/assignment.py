"""Assignment of subjects to arms, by a keyed hash that is the same in every environment and process.

Neither the subject nor the key is stored: each request brings its subject, and the hash says its arm.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

_PLACE_BITS = 53  # of a float's mantissa: a place is below 1, and never rounded up to it


def choose_arm(key: bytes, experiment: str, subject: str | None, shares: Sequence[float]) -> int | None:
    """Position of a subject's arm in `shares`; None for a missing or blank subject.

    key: secret of the deployment. experiment: its name; a subject's arms in two experiments are independent.
    shares: of the arms, 0 to 1; their sum is 1. The first one is the baseline's.

    A request without a subject has no arm: the baseline answers, and the answer is not counted.

    A subject keeps its arm while the baseline's share falls and the shares of all other arms grow by one
    factor: at 1, 10, 50 and 100 %, for instance. One hash says whether a subject leaves the baseline, and a
    second one says to which arm.
    """
    subject = (subject or "").strip()
    if not subject:
        return None
    digest = _digest(key, experiment, subject)
    candidates = 1.0 - shares[0]
    if _place(digest[:8]) >= candidates:
        return 0
    return 1 + _arm_at(_place(digest[8:16]), shares[1:])


def _digest(key: bytes, experiment: str, subject: str) -> bytes:
    name = experiment.encode()
    message = len(name).to_bytes(4, "big") + name + subject.encode("utf-8", "surrogatepass")
    return hmac.digest(key, message, hashlib.sha256)


def _place(digest: bytes) -> float:
    """A hash as a number from 0 to below 1."""
    return (int.from_bytes(digest, "big") >> 64 - _PLACE_BITS) / (1 << _PLACE_BITS)


def _arm_at(place: float, shares: Sequence[float]) -> int:
    """Position of the arm whose part of the unit interval holds `place`."""
    rest = place * sum(shares)
    last = 0
    for arm, share in enumerate(shares):
        if share > 0:
            last = arm
            if rest < share:
                return arm
            rest -= share
    return last  # rounding left a rest
