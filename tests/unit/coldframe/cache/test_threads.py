"""The cache in many threads: a long-lived server asks it from all of them."""

import random
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from coldframe.api.api import Api
from coldframe.cache.cache import Memory
from coldframe.cache.policy import Breaker, Policy
from coldframe.config import Settings
from coldframe.timing import StartMark
from tests.conftest import post, served, tiny_predictor
from tests.unit.coldframe.cache.test_cache import two_levels
from tests.unit.coldframe.cache.test_dynamodb_store import FakeTable, FakeTime

THREADS = 8


@pytest.fixture(autouse=True)
def restless_threads() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_memory() -> None:
    """Threads that put and get more than fits raise nothing, get what was put, and the size stays true."""
    cache = Memory(20 * 300)
    begin = threading.Barrier(THREADS)

    def use(seed: int) -> None:
        chance = random.Random(seed)
        begin.wait()
        for _ in range(500):
            keys = [bytes([chance.randrange(60)]) for _ in range(4)]
            cache.put_many({key: key * chance.randrange(1, 50) for key in keys[:2]})
            for key, value in cache.get_many(keys).items():
                assert value.strip(key) == b""

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(use, range(THREADS)))
    kept = cache.get_many([bytes([number]) for number in range(60)])
    assert cache.size_bytes == sum(len(value) + 250 for value in kept.values()) <= 20 * 300


def test_every_prediction_is_saved() -> None:
    """What each request computed is in the shared cache, whoever answered meanwhile."""
    table, time = FakeTable([]), FakeTime()
    predictor = tiny_predictor(cache=two_levels(table, time, Policy.ALWAYS, 1 << 20))
    engine = Api(served(predictor), Settings(log_level="off"), StartMark())
    texts = ["x" * (number % 7) + str(number) for number in range(400)]
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(lambda text: post(engine, {"text": text, "heads": ["first"]}), texts))
    other = tiny_predictor(cache=two_levels(table, time, Policy.ALWAYS, 0))
    assert other.predict(texts, ["first"]).usage.cache.l2 == len(texts)


def test_one_probe_at_a_time() -> None:
    """Of many threads that ask an open breaker after its cooldown, one is allowed to call."""
    for _ in range(50):
        now_s = [0.0]
        breaker = Breaker(lambda now_s=now_s: now_s[0])  # type: ignore[misc]
        breaker.failure(permanent=True)
        now_s[0] = 1.0
        begin = threading.Barrier(THREADS)

        def ask(_: int, breaker: Breaker = breaker, begin: threading.Barrier = begin) -> bool:
            begin.wait()
            return breaker.allow()

        with ThreadPoolExecutor(THREADS) as threads:
            assert sum(threads.map(ask, range(THREADS))) == 1


def test_one_cold_start() -> None:
    """Of many requests that arrive together, one was the first."""
    for _ in range(50):
        mark, begin = StartMark(), threading.Barrier(THREADS)

        def take(_: int, mark: StartMark = mark, begin: threading.Barrier = begin) -> str:
            begin.wait()
            return mark.take()

        with ThreadPoolExecutor(THREADS) as threads:
            assert list(threads.map(take, range(THREADS))).count("cold") == 1
