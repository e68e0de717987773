"""One model, many threads, shared passes: answers to the bit, whatever the neighbours do.

320 requests by default, and 20,000 within some minutes:
    SHARED_REQUESTS=20000 .venv/bin/python -m pytest tests/functional/server/test_shared_passes.py
"""

import math
import os
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from coldframe.config import Settings
from coldframe.errors import CallerGone, NotReady, OutOfTime, Overloaded
from coldframe.model.encoder import RowEncoder
from coldframe.model.estimator import AnswerSource
from coldframe.model.files import AUTO
from coldframe.model.tokenizer import Window
from coldframe.pipeline.answers import Prediction
from coldframe.pipeline.models import Models, load_models
from coldframe.scheduling.caller import Caller
from coldframe.scheduling.limits import Limits
from coldframe.serving.driver import Driver
from coldframe.serving.schedule import schedule_models
from coldframe.timing import Deadline
from coldframe.vectors import Vector

REQUESTS = int(os.environ.get("SHARED_REQUESTS", "320"))
THREADS = 48
HEAD = "logreg"
POISON = 9871  # a token that no text has
WORDS = ["NASA", "shuttle", "orbit", "hockey", "goalie", "window", "manager", "encryption", "doctor", "the"]


class PassBroken(Exception):
    """What a pass raises that holds a poisoned row."""


class Fragile:
    """The real encoder; a pass with a poisoned row raises. `held`: no pass begins before it is set."""

    def __init__(self, encoder: RowEncoder) -> None:
        self.dimension = encoder.dimension
        self.held = threading.Event()
        self.held.set()
        self.begun = threading.Semaphore(0)
        self._encoder = encoder

    def encode(self, rows: Sequence[Window]) -> list[Vector]:
        self.begun.release()
        assert self.held.wait(60)
        if any(POISON in row for row in rows):
            raise PassBroken
        return self._encoder.encode(rows)


class Served:
    """Models whose passes are shared, and their encoder. limits: of the scheduler."""

    def __init__(self, bundle: Path, limits: Limits) -> None:
        settings = Settings(model_dir=bundle, l1_cache_bytes=0)
        self.models: Models = load_models(settings)
        self.predictor = self.models.default
        alone = self.predictor.model.encoder
        self.encoder = alone.row_encoder = Fragile(alone.row_encoder)
        self.driver: Driver = schedule_models(self.models, limits)
        self.encoder.begun = threading.Semaphore(0)

    def predict(
        self, texts: Sequence[str], head: str = HEAD, limit_s: float = math.inf, **given: Any
    ) -> Prediction:
        return self.predictor.predict(texts, [head], use_cache=False, deadline=Deadline(limit_s, **given))


@pytest.fixture(scope="module")
def alone(bundle: Path) -> Callable[[Sequence[str]], list[bytes]]:
    """Answers of the same model without neighbours."""
    predictor = load_models(Settings(model_dir=bundle, l1_cache_bytes=0)).default
    known: dict[str, bytes] = {}

    def answers(texts: Sequence[str]) -> list[bytes]:
        for text in set(texts) - known.keys():
            known[text] = predictor.predict([text], [HEAD], use_cache=False).answers[HEAD][0]
        return [known[text] for text in texts]

    return answers


@pytest.fixture
def serve(bundle: Path) -> Iterator[Callable[..., Served]]:
    """Starts servers; their threads are ended after the test."""
    started: list[Served] = []

    def start(**limits: Any) -> Served:
        served = Served(bundle, Limits(**{"workers": 2, "objective_s": 600.0, **limits}))
        started.append(served)
        return served

    yield start
    for served in started:
        served.encoder.held.set()
        served.driver.close()


def texts_of(chance: random.Random) -> list[str]:
    """Some texts, mostly short, of a few lengths, so that they share passes."""
    return [
        " ".join(chance.choices(WORDS, k=chance.choice([1, 3, 3, 5, 5, 9, 40])))
        for _ in range(chance.choice([1, 1, 1, 2, 5]))
    ]


def test_answers_do_not_depend_on_neighbours(
    serve: Callable[..., Served], alone: Callable[[Sequence[str]], list[bytes]]
) -> None:
    """Among callers who hang up and rows that break passes, every other answer is the same, to the bit."""
    served, chance = serve(), random.Random(7)
    asked = [(texts_of(chance), chance.random()) for _ in range(REQUESTS)]
    poisoned = [[POISON] * length for length in (3, 5, 7)]

    def ask(number: int) -> str:
        texts, fate = asked[number]
        caller = Caller(bulk=fate > 0.8)
        if fate < 0.1:
            encoder = served.predictor.model.encoder
            with pytest.raises(PassBroken):
                encoder.embed([[poisoned[number % 3]]], Deadline(math.inf))
            return "failed"
        if fate < 0.25:
            threading.Timer(fate / 10, caller.leave).start()
        try:
            answers = served.predict(texts, caller=caller).answers[HEAD]
        except CallerGone:
            assert fate < 0.25
            return "gone"
        return "right" if answers == alone(texts) else "wrong"

    with ThreadPoolExecutor(THREADS) as threads:
        ends = list(threads.map(ask, range(REQUESTS)))
    assert served.driver.drain(60)
    stats = served.driver.stats()
    assert "wrong" not in ends
    assert ends.count("failed") == stats.failed == sum(fate < 0.1 for _, fate in asked)
    assert 0 < stats.cancelled <= ends.count("gone")  # others hung up before their texts were cut
    assert (stats.queued_jobs, stats.queued_rows, stats.queued_bytes) == (0, 0, 0)
    assert stats.rows > stats.passes  # passes were shared


def test_auto_answers_are_those_of_a_function(serve: Callable[..., Served], bundle: Path) -> None:
    """`auto` answers the same from shared passes, long texts in rounds included, and keeps no room after."""
    plain = load_models(Settings(model_dir=bundle, l1_cache_bytes=0)).default
    served, chance = serve(), random.Random(11)
    asked = [texts_of(chance) for _ in range(60)] + [[" ".join(chance.choices(WORDS, k=900))]] * 2
    expected = [plain.predict(texts, [AUTO], use_cache=False).answers[AUTO] for texts in asked]
    with ThreadPoolExecutor(16) as threads:
        found = list(
            threads.map(lambda texts: served.predict(texts, AUTO, caller=Caller()).answers[AUTO], asked)
        )
    assert found == expected
    assert served.driver.stats().queued_rows == 0


def test_a_long_text_keeps_room_for_its_windows(serve: Callable[..., Served]) -> None:
    """While the first window of a text is read, its other ones count; who hangs up then gives all back."""
    served, caller = serve(workers=1), Caller()
    long = "window manager doctor " * 300
    with ThreadPoolExecutor(1) as other:
        served.encoder.held.clear()
        first = other.submit(served.predict, [long], AUTO, caller=caller)
        assert served.encoder.begun.acquire(timeout=60)
        assert served.driver.stats().queued_rows > 1
        caller.leave()
        with pytest.raises(CallerGone):
            first.result(timeout=60)
        assert served.driver.stats().queued_rows == 0
        served.encoder.held.set()


def test_overload_is_said_with_a_time(serve: Callable[..., Served]) -> None:
    """What others leave no room for is refused with `Retry-After`; `auto` with a deadline guesses instead."""
    served = serve(workers=1, objective_s=0.001, bulk_patience_s=600.0, max_queue_rows=4)
    unsure = "window manager doctor"
    with ThreadPoolExecutor(1) as other:
        served.encoder.held.clear()
        first = other.submit(
            served.predict, ["shuttle", "goalie", "doctor", "orbit"], caller=Caller(bulk=True)
        )
        assert served.encoder.begun.acquire(timeout=60)
        with pytest.raises(Overloaded) as refused:
            served.predict(["hockey"])
        assert int(refused.value.headers["retry-after"]) >= 1
        with pytest.raises(Overloaded):
            served.predict(["hockey"], limit_s=600)
        hurried = served.predict([unsure], AUTO, limit_s=600)
        assert hurried.sources == [AnswerSource.RUSHED]
        with pytest.raises(Overloaded):
            served.predict([unsure], AUTO)
        with pytest.raises(OutOfTime):
            served.predict(["hockey"], limit_s=0.0)
        served.encoder.held.set()
        assert first.result().answers
    assert served.driver.stats().refused >= 4


def test_hanging_up_frees_the_place(serve: Callable[..., Served]) -> None:
    """The rows of a caller who hangs up leave the queue while a pass of others still runs."""
    served, caller = serve(workers=1), Caller()
    with ThreadPoolExecutor(2) as others:
        served.encoder.held.clear()
        first = others.submit(served.predict, ["shuttle"])
        assert served.encoder.begun.acquire(timeout=60)
        second = others.submit(served.predict, ["orbit goalie"], caller=caller)
        while served.driver.stats().queued_jobs < 2:
            pass
        caller.leave()
        with pytest.raises(CallerGone):
            second.result(timeout=60)
        assert served.driver.stats().queued_rows == 1
        served.encoder.held.set()
        assert first.result().answers


def test_who_has_left_gets_no_pass(serve: Callable[..., Served]) -> None:
    """A caller who hung up before the work began has none done."""
    served, caller = serve(), Caller()
    caller.leave()
    with pytest.raises(CallerGone):
        served.predict(["shuttle"], caller=caller)


def test_closing_refuses_and_ends(serve: Callable[..., Served]) -> None:
    """Once closed, the driver refuses with 503 what comes; closing again changes nothing."""
    served = serve()
    assert served.predict(["shuttle"]).answers
    assert served.driver.drain(60)
    served.driver.close()
    served.driver.close()
    with pytest.raises(NotReady):
        served.predict(["shuttle"])
