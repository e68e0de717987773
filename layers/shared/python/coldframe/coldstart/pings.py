"""Pings: invocations that keep environments warm. Each is held for a moment, so that several reach different
ones.

A ping reaches an existing environment, or starts one. Priming is different: an environment runs it once, in
its init phase, ahead of traffic (`coldframe_functions.predict.priming`). This module imports little, and only
the standard library: functions that send pings have nothing else, and the predict function checks every event
for a ping.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

SOURCE = "coldframe.warm-up"
"""Key that marks a ping. It must not change: a new warmer may ping an old version."""

HOLDS_MS = (250, 1000, 4000)
"""Seconds of hold, round by round, until enough different environments have answered.

A ping must be held until the last one of its round has arrived, and no longer: a held environment
cannot serve requests.
"""

Invoke = Callable[[dict[str, Any]], dict[str, Any]]
"""Invokes a version of the predict function with an event, and returns its result."""


class Throttled(Exception):
    """An invocation was refused, because no environment was available."""


class FunctionFailed(Exception):
    """The function raised, or its environment died; the text is Lambda's error type."""


class PingReport(NamedTuple):
    """Result of a round of pings: different environments, number of them that started for it, and
    refusals.
    """

    environments: int
    cold: int
    throttled: int


def ping(hold_ms: int) -> dict[str, Any]:
    """The event that keeps an environment busy for `hold_ms`."""
    return {"source": SOURCE, "hold_ms": hold_ms}


def ping_environments(invoke: Invoke, environments: int, holds_ms: tuple[int, ...] = HOLDS_MS) -> PingReport:
    """Pings until `environments` different ones have answered, or all rounds are over.

    invoke: called from several threads at once. Its errors are raised, except Throttled, which is counted.
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

    The result raises Throttled and FunctionFailed. Neither contains the event.
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
