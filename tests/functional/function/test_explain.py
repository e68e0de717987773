"""Explanations of answers, on the real model and its contract."""

import itertools
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe.api.api import Api
from coldframe.config import Settings
from coldframe.contract import MAX_EXPLAINED_TEXTS, MAX_EXPLAINED_WORDS, MAX_SPANS
from coldframe.model.tokenizer import content_tokens, normalise
from coldframe.pipeline.models import Models, load_models
from coldframe.pipeline.predictor import Predictor
from coldframe.pipeline.words import WordsUnknown, spans_of, words_of
from coldframe.timing import NO_DEADLINE, StartMark
from coldframe_bench.data.texts import sentences
from tests.conftest import LABELS, post, served, tiny_predictor

HEADS = ["auto", "logreg", "rf", "hgb", "mlp", "ensemble"]
SHORT = "Our hockey team won the final"
TEXTS = [
    SHORT,
    "The shuttle reached orbit",
    "  Cafe\u0301 owners 👩🏽‍🚀 sell\u00a0my old bike\n 🚲 ",
    "宇宙 went to space 😀",
    "hockey",
    "",
    "a\x0cb \u200b cipher",
    " ".join(sentences()[:60]),
]


@pytest.fixture(scope="module")
def models(bundle: Path) -> Models:
    return load_models(Settings(model_dir=bundle))


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def api(models: Models, lines: list[str]) -> Iterator[Api]:
    """The real model behind the contract. The encoder's speed is as it was, after each test."""
    speed = models.default.model.encoder.ms_per_token.value
    yield Api(models, Settings(), StartMark(), lines.append)
    models.default.model.encoder.ms_per_token.value = speed


def ask(api: Api, **body: object) -> list[dict[str, Any]]:
    """Answers by head, for each text."""
    reply = post(api, body)
    assert reply.status == 200, reply.body
    return [answer["heads"] for answer in json.loads(reply.body)["predictions"]]


def log_odds(answer: dict[str, Any], label: str) -> float:
    """Log-odds of a label, from the probabilities of all."""
    others = math.fsum(value for name, value in answer["scores"].items() if name != label)
    return math.log(answer["scores"][label] / others)


def test_answers_stay(api: Api) -> None:
    """An explanation changes no bit of an answer, computed or from the cache, by any head."""
    for use_cache in (False, True, True):
        plain = ask(api, texts=TEXTS, heads=HEADS, scores=True, cache=use_cache)
        explained = ask(api, texts=TEXTS, heads=HEADS, scores=True, cache=use_cache, explain=True)
        for before, after in zip(plain, explained, strict=True):
            assert [answer.pop("explanation")["method"] for answer in after.values()]
            assert after == before


def test_estimator_adds_up(api: Api) -> None:
    """By the estimator alone, weights and rest sum to the log-odds of the label."""
    summed = 0
    for text in TEXTS:
        (answer,) = (heads["auto"] for heads in ask(api, text=text, scores=True, explain=True))
        explanation = answer["explanation"]
        if answer["by"] != "estimator" or explanation is None:
            continue
        assert explanation["method"] == "exact"
        total = math.fsum(word["weight"] for word in explanation["words"]) + explanation["rest"]
        assert total == pytest.approx(log_odds(answer, answer["label"]), abs=0.002)
        summed += 1
    assert summed


def test_estimator_evidence_is_a_sum(models: Models) -> None:
    """The evidence of a text is the sum over its tokens."""
    predictor = models.default
    for text in TEXTS:
        ids = content_tokens(predictor.tokenizer.cut([normalise(text)], NO_DEADLINE)[0])
        parts = predictor.estimator.token_evidence(ids).values()
        sums = [math.fsum(part) for part in zip(*parts, strict=True)] or [0.0] * 20
        assert sums == pytest.approx(predictor.estimator.evidence(ids), abs=1e-9)  # type: ignore[attr-defined]


@pytest.mark.parametrize("head", HEADS[1:])
def test_weight_is_what_is_lost(api: Api, head: str) -> None:
    """By a head, a word's weight is what the log-odds lose when a caller sends the text without it."""
    (answer,) = ask(api, text=SHORT, heads=[head], scores=True, explain=True)
    label, whole = answer[head]["label"], log_odds(answer[head], answer[head]["label"])
    words = answer[head]["explanation"]["words"]
    assert words
    for word in words:
        without = SHORT[: word["start"]] + SHORT[word["end"] :]
        (less,) = ask(api, text=without, heads=[head], scores=True)
        assert word["weight"] == pytest.approx(whole - log_odds(less[head], label), abs=1e-3)


def test_ensemble_names_the_word(api: Api) -> None:
    """A text that the estimator does not answer alone is explained by leaving words out."""
    (answer,) = ask(api, text="hockey", explain=True)
    assert answer["auto"]["by"] == "ensemble"
    (word,) = answer["auto"]["explanation"]["words"]
    assert (word["start"], word["end"]) == (0, 6)


def test_words_are_of_the_callers_text(api: Api) -> None:
    """Offsets count characters of the text as it was sent; at most ten words, the largest weight first."""
    for text, heads in zip(TEXTS, ask(api, texts=TEXTS, heads=HEADS, explain=True), strict=True):
        for answer in heads.values():
            words = answer["explanation"]["words"]
            assert len(words) <= MAX_EXPLAINED_WORDS
            weights = [word["weight"] for word in words]
            assert weights == sorted(weights, reverse=True)
            assert all(weight > 0 for weight in weights)
            for word in words:
                named = text[word["start"] : word["end"]]
                assert named == named.strip()
                assert named
    (bike,) = ask(api, text=TEXTS[2], heads=["logreg"], explain=True)
    first = bike["logreg"]["explanation"]["words"][0]
    assert TEXTS[2][first["start"] : first["end"]] == "bike"


@settings(max_examples=200)
@given(
    st.text(
        st.sampled_from(
            "aé e\u0301\u0308ßΣσ'.-[]👩🏽‍\u200d🚀宇宙か\u3099\x0c\x1c\x85\u200b\u00a0\n\u2028ＡＫ\u0130"
        )
    )
)
def test_words_cover_the_tokens(models: Models, text: str) -> None:
    """The words of any text have the text's tokens, one after the other, and no white space."""
    predictor = models.default
    content = content_tokens(predictor.tokenizer.cut([normalise(text)], NO_DEADLINE)[0])
    words = words_of(text, content, predictor.tokenizer, NO_DEADLINE)
    assert [(word.first, word.last) for word in words] == list(
        zip([0, *(word.last for word in words)][:-1], [word.last for word in words], strict=True)
    )
    assert sum(word.last - word.first for word in words) == len(content)
    assert all(normalise(text[word.start : word.end]).split() for word in words)


def test_long_texts_have_spans(models: Models) -> None:
    """A text has at most 32 spans, which together are all of its words."""
    predictor, text = models.default, TEXTS[-1]
    content = content_tokens(predictor.tokenizer.cut([normalise(text)], NO_DEADLINE)[0])
    words = words_of(text, content, predictor.tokenizer, NO_DEADLINE)
    spans = spans_of(words, MAX_SPANS)
    assert len(words) > MAX_SPANS >= len(spans)
    assert (spans[0].first, spans[-1].last) == (0, len(content))
    assert all(one.last == other.first for one, other in itertools.pairwise(spans))


def test_without_time_there_is_the_answer(api: Api, models: Models) -> None:
    """Where the time is short, the answer comes without an explanation, and says why."""
    (before,) = ask(api, text="hockey", heads=["logreg"])
    models.default.model.encoder.ms_per_token.value = 1e9
    (answer,) = ask(api, text="hockey", heads=["logreg"], budget_ms=60_000, explain=True)
    assert answer["logreg"].pop("explanation") is None
    assert answer["logreg"].pop("unexplained") == "time"
    assert answer == before


def test_rushed_answers_are_explained(api: Api, models: Models) -> None:
    """An answer that was rushed is the estimator's, and its explanation is exact."""
    models.default.model.encoder.ms_per_token.value = 1e9
    (answer,) = ask(api, text="hockey!", cache=False, budget_ms=60_000, explain=True)
    assert answer["auto"]["rushed"]
    assert answer["auto"]["explanation"]["method"] == "exact"


def test_too_many_texts(api: Api) -> None:
    """More texts than a request may have explained are refused, and the error says how many."""
    reply = post(api, {"texts": ["a"] * (MAX_EXPLAINED_TEXTS + 1), "explain": True})
    assert reply.status == 422
    assert "expected at most 8" in json.loads(reply.body)["detail"]
    assert len(ask(api, texts=["hockey"] * MAX_EXPLAINED_TEXTS, explain=True)) == MAX_EXPLAINED_TEXTS


def test_work_is_counted(api: Api, lines: list[str]) -> None:
    """The encoder's work for explanations is in the usage, the time in the log, and no text is."""
    body = {"text": SHORT, "heads": ["logreg"], "cache": False}
    plain = json.loads(post(api, body).body)["usage"]
    usage = json.loads(post(api, {**body, "explain": True}).body)["usage"]
    tokens = plain["tokens"]
    assert tokens < usage["tokens"] <= tokens * (2 + MAX_SPANS)
    assert "explain" in json.loads(lines[-1])["stages_ms"]
    assert "hockey" not in lines[-1]


def test_tokens_across_words() -> None:
    """A tokenizer whose tokens cross words gives no explanation, and the answer says so."""
    api = Api(served(tiny_predictor()), Settings(), StartMark(), lambda line: None)
    (answer,) = ask(api, text="ab cd", heads=["first"], explain=True)
    assert answer["first"]["label"] in LABELS
    assert (answer["first"]["explanation"], answer["first"]["unexplained"]) == (None, "words")
    predictor = tiny_predictor()
    with pytest.raises(WordsUnknown):
        words_of("ab cd", [*map(ord, "ab cd")], predictor.tokenizer, NO_DEADLINE)


def probability(predictor: Predictor, text: str, label: int) -> float:
    """Probability of a label by the head `auto`."""
    found = predictor.predict([text], ["auto"]).answers["auto"][0]
    return memoryview(found).cast("f")[label]


def without(text: str, places: list[tuple[int, int]]) -> str:
    """A text without the characters of these places."""
    for start, end in sorted(places, reverse=True):
        text = text[:start] + text[end:]
    return text


def test_deletion(api: Api, models: Models) -> None:
    """Without the named words the label loses more probability than without random ones, in 95 % of texts."""
    predictor, chance = models.default, random.Random(1)
    texts = chance.sample([text for text in sentences() if len(text.split()) >= 8], 60)
    better = 0
    for text in texts:
        (answer,) = ask(api, text=text, explain=True)
        best = predictor.manifest.labels.index(answer["auto"]["top"][0]["label"])
        named = [(word["start"], word["end"]) for word in answer["auto"]["explanation"]["words"]][:3]
        places = [(match.start, match.end) for match in words_in(predictor, text)]
        least = probability(predictor, without(text, named), best)
        drawn = [without(text, chance.sample(places, len(named))) for _ in range(5)]
        by_chance = [probability(predictor, other, best) for other in drawn]
        better += least < math.fsum(by_chance) / len(by_chance)
    assert better >= 0.95 * len(texts)


def words_in(predictor: Predictor, text: str) -> list[Any]:
    """The words of a text."""
    content = content_tokens(predictor.tokenizer.cut([normalise(text)], NO_DEADLINE)[0])
    return list(words_of(text, content, predictor.tokenizer, NO_DEADLINE))
