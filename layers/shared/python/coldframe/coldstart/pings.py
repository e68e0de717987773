"""Pings: invocations that keep environments warm, each held for a moment so that several get one each.

A ping reaches an environment that is there, or starts one. Priming is another thing: what an environment does
once, in its init phase, ahead of traffic (`functions/predict/priming.py`). Standard library only, and little
of it: the functions that send pings have nothing else, and the one that is pinged looks at every event.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

SOURCE = "coldframe.warm-up"
"""By this a function knows a ping. It must not change: a new warmer may ping an old version."""

HOLDS_MS = (250, 1000, 4000)
"""How long environments are held, round by round, until enough different ones have answered.

A ping must be held until the last one of its round has arrived, and no longer: a held environment
is not there for requests.
"""

Invoke = Callable[[dict[str, Any]], dict[str, Any]]
"""Invokes a version of the predict function with an event, and returns its result."""


class Throttled(Exception):
    """An invocation was refused, because no environment was to be had for it."""


class FunctionFailed(Exception):
    """The function raised, or its environment died; the text is Lambda's error type."""


class PingReport(NamedTuple):
    """What a round of pings found: different environments, how many of them started for it, and refusals."""

    environments: int
    cold: int
    throttled: int


def ping(hold_ms: int) -> dict[str, Any]:
    """The event that asks an environment to stay busy for `hold_ms`."""
    return {"source": SOURCE, "hold_ms": hold_ms}


def ping_environments(invoke: Invoke, environments: int, holds_ms: tuple[int, ...] = HOLDS_MS) -> PingReport:
    """Pings until `environments` different ones have answered, or all rounds are over.

    invoke: called from several threads at once. Raises what it raises, except Throttled, which is counted.
    """
    from concurrent.futures import ThreadPoolExecutor

    cold: dict[str, bool] = {}
    throttled = 0
    with ThreadPoolExecutor(environments) as threads:
        for hold_ms in holds_ms:
            for pong in threads.map(_answer_or_none, [invoke] * environments, [hold_ms] * environments):
                if pong is None:
                    throttled += 1
                else:
                    cold.setdefault(pong["environment"], pong["start"] == "cold")
            if len(cold) >= environments or throttled:
                break
    return PingReport(len(cold), sum(cold.values()), throttled)


def _answer_or_none(invoke: Invoke, hold_ms: int) -> dict[str, Any] | None:
    try:
        return invoke(ping(hold_ms))
    except Throttled:
        return None


def invoker(client: Any, function: str) -> Invoke:
    """Invokes `function` (name or ARN, qualified) through boto3's Lambda client and waits for its result.

    The result raises Throttled and FunctionFailed. Neither ever holds what the function was asked.
    """

    def invoke(event: dict[str, Any]) -> dict[str, Any]:
        try:
            response = client.invoke(FunctionName=function, Payload=json.dumps(event).encode())
        except client.exceptions.TooManyRequestsException as exc:
            raise Throttled from exc
        result: dict[str, Any] = json.loads(response["Payload"].read() or b"{}")
        if "FunctionError" in response:
            raise FunctionFailed(result.get("errorType", response["FunctionError"]))
        return result

    return invoke
