"""Answers a ping: one small prediction on the path of a request, then busy for the requested time."""

import json
import time
import uuid
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from coldframe.api.api import Api, Request
from coldframe.contract import PREDICT
from coldframe.model.files import AUTO

_SPARED_MS = 1000  # of the invocation's time, reserved for the answer


def answer_ping(
    event: Mapping[str, Any],
    api: Api,
    request_id: str,
    time_left_s: Callable[[], float],
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Any]:
    """Holds this environment for the `hold_ms` of the event, or until the invocation is almost over.

    Returns the name of the environment, and its start: `cold` when this ping waited for the init phase,
    in place of a request.
    """
    # `auto` alone might be sure, and leave the encoder unused. Every model has a partner head.
    body = {
        "text": "warm-up",
        "heads": [AUTO, api.models.default.manifest.estimator.partner],
        "cache": False,
    }
    reply = api.answer(Request(*PREDICT, body=json.dumps(body).encode(), request_id=request_id))
    answer = json.loads(reply.body)
    if reply.status != 200:
        raise RuntimeError(f"The prediction of a ping was answered with {reply.status}.")
    hold_ms = max(0, min(int(event["hold_ms"]), round(time_left_s() * 1e3) - _SPARED_MS))
    sleep(hold_ms / 1e3)
    return {"environment": environment_id(), "start": answer["start"], "held_ms": hold_ms}


@cache
def environment_id() -> str:
    """A name of this environment; created at its first use, so that a snapshot does not contain it."""
    return uuid.uuid4().hex
