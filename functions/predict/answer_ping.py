"""Answers a ping: one small prediction the way a request goes, then busy for as long as asked."""

import json
import time
import uuid
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from coldframe.api.api import Api, Request
from coldframe.contract import PREDICT
from coldframe.model.files import AUTO

_SPARED_MS = 1000  # of the invocation's time, for the way back


def answer_ping(
    event: Mapping[str, Any],
    api: Api,
    request_id: str,
    left_ms: Callable[[], int],
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Any]:
    """Holds this environment for the `hold_ms` of the event, or until the invocation is almost over.

    Returns which environment it is, and its start: `cold` when this ping waited for the init phase,
    so that no request does.
    """
    # `auto` alone might be sure, and leave the encoder cold. Every model has a partner head.
    asked = {
        "text": "warm-up",
        "heads": [AUTO, api.models.default.manifest.estimator.partner],
        "cache": False,
    }
    reply = api.answer(Request(*PREDICT, body=json.dumps(asked).encode(), request_id=request_id))
    answer = json.loads(reply.body)
    if reply.status != 200:
        raise RuntimeError(f"The prediction of a ping was answered with {reply.status}.")
    hold_ms = max(0, min(int(event["hold_ms"]), left_ms() - _SPARED_MS))
    sleep(hold_ms / 1e3)
    return {"environment": environment_id(), "start": answer["start"], "held_ms": hold_ms}


@cache
def environment_id() -> str:
    """A name of this environment; made when first asked for, so that a snapshot does not hold it."""
    return uuid.uuid4().hex
