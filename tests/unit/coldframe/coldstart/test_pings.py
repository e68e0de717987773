"""Pings: how often they are sent, and what an environment makes of one."""

import threading
from typing import Any

import pytest

from coldframe.api.api import Api
from coldframe.coldstart.pings import (
    HOLDS_MS,
    SOURCE,
    FunctionFailed,
    PingReport,
    Throttled,
    ping,
    ping_environments,
)
from coldframe.config import Settings
from coldframe.errors import BundleCorrupt
from coldframe.timing import StartMark
from coldframe_functions.predict.answer_ping import answer_ping
from tests.conftest import TinyEncoder, TinyHead, served, tiny_predictor
from tests.functional.function.test_predict_function import HTTP, REST


class Environments:
    """Answers pings: each one that is held keeps its environment from the others."""

    def __init__(self, needs_hold_ms: int = 0, limit: int = 1000) -> None:
        """needs_hold_ms: pings held for less all find the same environment."""
        self.holds_ms: list[int] = []
        self._needs_hold_ms = needs_hold_ms
        self._limit = limit
        self._lock = threading.Lock()

    def __call__(self, event: dict[str, Any]) -> dict[str, Any]:
        assert event["source"] == SOURCE
        with self._lock:
            if len(self.holds_ms) >= self._limit:
                raise Throttled
            self.holds_ms.append(event["hold_ms"])
            number = self.holds_ms.count(event["hold_ms"]) if event["hold_ms"] >= self._needs_hold_ms else 1
            return {"environment": str(number), "start": "cold" if len(self.holds_ms) == number else "warm"}


def test_one_round_when_all_answer() -> None:
    """N different environments in the first round: there is no second one."""
    environments = Environments()
    assert ping_environments(environments, 5) == PingReport(environments=5, cold=5, throttled=0)
    assert environments.holds_ms == [HOLDS_MS[0]] * 5


def test_longer_holds_until_enough_are_different() -> None:
    """When pings shared environments, the next round holds them for longer."""
    environments = Environments(needs_hold_ms=1000)
    assert ping_environments(environments, 4).environments == 4
    assert environments.holds_ms == [250] * 4 + [1000] * 4


def test_rounds_come_to_an_end() -> None:
    """Environments that cannot be told apart are reported as they are."""
    environments = Environments(needs_hold_ms=100_000)
    assert ping_environments(environments, 3).environments == 1
    assert environments.holds_ms == [250] * 3 + [1000] * 3 + [4000] * 3


def test_throttled_rounds_are_not_repeated() -> None:
    """Where a limit is reached, a second round would take environments from requests."""
    assert ping_environments(Environments(limit=2), 3) == PingReport(environments=2, cold=2, throttled=1)


def test_failures_are_raised() -> None:
    """A version that fails is an error of whoever warms it."""

    def fail(event: dict[str, Any]) -> dict[str, Any]:
        raise FunctionFailed("ImportError")

    with pytest.raises(FunctionFailed):
        ping_environments(fail, 2)


@pytest.mark.parametrize("event", [HTTP, REST])
def test_requests_are_no_pings(event: dict[str, Any]) -> None:
    """No event of API Gateway has the member by which a ping is known."""
    assert "source" not in event


# What an environment does.


@pytest.fixture
def slept_s() -> list[float]:
    return []


@pytest.mark.parametrize(
    ("hold_ms", "left_ms", "held_ms"),
    [(250, 29_000, 250), (0, 29_000, 0), (5000, 3000, 2000), (5000, 500, 0)],
)
def test_hold(api: Api, slept_s: list[float], hold_ms: int, left_ms: int, held_ms: int) -> None:
    """It stays busy for as long as asked, but never until its invocation is stopped."""
    pong = answer_ping(ping(hold_ms), api, "1", lambda: left_ms / 1e3, slept_s.append)
    assert (pong["held_ms"], slept_s) == (held_ms, [held_ms / 1000])


def test_encoder_is_run(slept_s: list[float], log_lines: list[str]) -> None:
    """A ping warms the encoder and the partner head of any model, whatever its heads are called."""
    encoder, read = TinyEncoder(), []

    def read_head(name: str) -> TinyHead:
        read.append(name)
        return TinyHead()

    api = Api(served(tiny_predictor(encoder, read_head)), Settings(), StartMark(), log_lines.append)
    answer_ping(ping(0), api, "1", lambda: 29.0, slept_s.append)
    assert encoder.batches
    assert read == ["second"]


def test_start_is_cold_once(api: Api, slept_s: list[float], log_lines: list[str]) -> None:
    """The first ping takes the cold start; both have the name of this environment, and a log line."""
    first, second = (answer_ping(ping(0), api, "1", lambda: 29.0, slept_s.append) for _ in range(2))
    assert (first["start"], second["start"]) == ("cold", "warm")
    assert first["environment"] == second["environment"]
    assert len(log_lines) == 2


def test_a_failing_prediction_is_an_error(log_lines: list[str]) -> None:
    """An environment that cannot predict does not pass for a warm one."""

    def missing(name: str) -> TinyHead:
        raise BundleCorrupt(name)

    api = Api(served(tiny_predictor(read_head=missing)), Settings(), StartMark(), log_lines.append)
    with pytest.raises(RuntimeError, match="503"):
        answer_ping(ping(0), api, "1", lambda: 29.0, lambda seconds: None)
