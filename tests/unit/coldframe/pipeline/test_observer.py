"""Sketches of a predictor's answers: what counts, and when they reach the log."""

import json
from typing import Any

import pytest

from coldframe.api.api import Api, Request
from coldframe.config import Settings
from coldframe.monitoring.reading import read_sketches
from coldframe.pipeline.observer import Observer
from coldframe.pipeline.predictor import Predictor
from coldframe.timing import StartMark
from tests.conftest import served, tiny_predictor

SECRET = "zyxwvsecret"


class Minutes:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def minutes() -> Minutes:
    return Minutes()


@pytest.fixture
def predictor(minutes: Minutes) -> Predictor:
    predictor = tiny_predictor()
    predictor.observer = Observer(
        predictor.manifest, predictor.encoder, lambda ids: 1, predictor.tokenizer.count_fragments, minutes
    )
    return predictor


@pytest.fixture
def api(predictor: Predictor, log_lines: list[str]) -> Api:
    return Api(served(predictor), Settings(sketches="log"), StartMark(), log_lines.append)


def ask(api: Api, **body: Any) -> None:
    reply = api.answer(Request("POST", "/v1/predict", body=json.dumps(body).encode()))
    assert reply.status == 200


def test_answers_are_handed_over_once_a_minute(api: Api, minutes: Minutes, log_lines: list[str]) -> None:
    ask(api, texts=["one", "two"], heads=["auto"])
    assert read_sketches(log_lines).sketches == []
    minutes.now_s += 61
    ask(api, text="three", heads=["auto"])
    (sketch,) = read_sketches(log_lines).sketches
    assert (sketch.counts.texts, sketch.sequence, sketch.head) == (2, 1, "auto")
    assert sketch.end_s - sketch.start_s == 61


def test_the_end_hands_over_what_is_left(api: Api, minutes: Minutes, log_lines: list[str]) -> None:
    """An API that closes logs the answers since the last sketch, and once only."""
    api.close()
    assert read_sketches(log_lines).sketches == []
    ask(api, texts=["one", "two"], heads=["auto"])
    minutes.now_s += 1
    api.close()
    api.close()
    (sketch,) = read_sketches(log_lines).sketches
    assert (sketch.counts.texts, sketch.end_s - sketch.start_s) == (2, 1)


def test_tokens_that_continue_a_word_are_counted(api: Api, minutes: Minutes, log_lines: list[str]) -> None:
    """A sketch has each text's share of such tokens: of one text a quarter, of another none."""
    ask(api, texts=["abc1", "abcd"], heads=["auto"])
    minutes.now_s += 61
    api.log_sketches()
    (sketch,) = read_sketches(log_lines).sketches
    assert sketch.counts.fragments == [1, 0, 0, 0, 0, 1, *[0] * 5]


def test_a_repeated_text_counts_once(api: Api, minutes: Minutes, log_lines: list[str]) -> None:
    for _ in range(3):
        ask(api, texts=["one", "one"], heads=["auto"])
    minutes.now_s += 61
    api.log_sketches()
    (sketch,) = read_sketches(log_lines).sketches
    assert sketch.counts.texts == 1


def test_answers_of_other_heads_do_not_count(predictor: Predictor, api: Api, minutes: Minutes) -> None:
    head = next(iter(predictor.manifest.heads))
    ask(api, text="one", heads=[head])
    minutes.now_s += 61
    assert predictor.observer is not None
    assert predictor.observer.hand_over() is None


def test_a_restored_environment_has_another_name(api: Api, minutes: Minutes, log_lines: list[str]) -> None:
    ask(api, text="counted before the snapshot", heads=["auto"])
    for text in ("one", "two"):
        api.after_restore()
        ask(api, text=text, heads=["auto"])
        minutes.now_s += 61
        api.log_sketches()
    first, second = read_sketches(log_lines).sketches
    assert first.environment != second.environment
    assert [first.counts.texts, second.counts.texts] == [1, 1]


def test_no_text_reaches_a_sketch(api: Api, minutes: Minutes, log_lines: list[str]) -> None:
    ask(api, text=f"one {SECRET}", heads=["auto"])
    minutes.now_s += 61
    api.log_sketches()
    assert len(read_sketches(log_lines).sketches) == 1
    assert SECRET not in "".join(log_lines)
    assert max(map(len, log_lines)) < 4500


def test_a_cold_start_imports_no_observer(minutes: Minutes, log_lines: list[str]) -> None:
    """The first answer is not counted; the second one is, as all later ones."""
    predictor = tiny_predictor()
    api = Api(served(predictor), Settings(sketches="log"), StartMark(), log_lines.append)
    ask(api, text="one", heads=["auto"])
    assert predictor.observer is None
    ask(api, text="two", heads=["auto"])
    assert isinstance(predictor.observer, Observer)


def test_without_the_setting_nothing_is_counted(log_lines: list[str]) -> None:
    predictor = tiny_predictor()
    api = Api(served(predictor), Settings(), StartMark(), log_lines.append)
    ask(api, text="one", heads=["auto"])
    assert predictor.observer is None
    assert read_sketches(log_lines).sketches == []
