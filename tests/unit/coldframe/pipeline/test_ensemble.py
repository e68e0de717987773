"""The head `ensemble`: the weighted mean of its members, of those that fit into a stated budget."""

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from coldframe.api.api import Api, Request
from coldframe.cache.cache import PredictionCache
from coldframe.columns import predict_column, refuse_rushed
from coldframe.config import Settings
from coldframe.errors import BundleCorrupt, Invalid, OutOfTime
from coldframe.jobs.records import Options
from coldframe.model.bundle import EnsembleFacts, check_members
from coldframe.model.files import AUTO, ENSEMBLE
from coldframe.model.heads import Heads
from coldframe.model.model import Model
from coldframe.pipeline.ensemble import cheapest, mean_answers
from coldframe.pipeline.objective import arms_of
from coldframe.pipeline.predictor import Predictor
from coldframe.schemas import Figures
from coldframe.timing import NO_DEADLINE, Deadline, StartMark
from coldframe.vectors import Vector, to_floats, to_vector
from coldframe_functions.jobs.answering import ModelAnswerer
from tests.conftest import (
    TinyCentroids,
    TinyEncoder,
    TinyHead,
    post,
    sealed,
    served,
    tiny_manifest,
    tiny_predictor,
)

WEIGHTS = {AUTO: 0.5, "first": 0.2, "second": 0.3}
SURE, UNSURE = "ab", "a"
NAMES = [AUTO, "first", "second"]
HOUR_S = 3600.0


class StandingClock:
    """A clock that goes on only when something takes time."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class TimedHead(TinyHead):
    """A head with opinions and a speed of its own."""

    def __init__(self, clock: StandingClock, text_s: float, likes: int) -> None:
        self._clock, self._text_s, self._likes = clock, text_s, likes

    def predict(self, embeddings: Sequence[Vector]) -> list[Vector]:
        self._clock.now_s += self._text_s * len(embeddings)
        rows = [to_floats(row) for row in super().predict(embeddings)]
        return [to_vector([*row[self._likes :], *row[: self._likes]]) for row in rows]


class TimedEncoder(TinyEncoder):
    """An encoder that takes its time for each pass."""

    def __init__(self, clock: StandingClock, pass_s: float) -> None:
        super().__init__()
        self._clock, self.pass_s = clock, pass_s

    def encode(self, rows: Sequence[Any]) -> list[Vector]:
        self._clock.now_s += self.pass_s
        return super().encode(rows)


def ensemble(
    weights: dict[str, float] = WEIGHTS,
    clock: StandingClock | None = None,
    pass_s: float = 0.0,
    first_s: float = 0.0,
    cache: PredictionCache | None = None,
) -> Predictor:
    """A model with these weights, and a clock that its parts move on."""
    clock = clock or StandingClock()
    facts = EnsembleFacts(weights, {"text": 0.6}, 0.6)
    manifest = sealed(replace(tiny_manifest(), ensemble=facts, version=""))
    predictor = tiny_predictor(TimedEncoder(clock, pass_s), clock=clock, manifest=manifest, cache=cache)
    parts = {"first": TimedHead(clock, first_s, 0), "second": TimedHead(clock, 0.0, 1)}
    heads = Heads(lambda name: parts[name], TinyCentroids(), clock)
    predictor.model = Model(predictor.model.encoder, heads)
    return predictor


def warmed(clock: StandingClock, pass_s: float = 0.0, first_s: float = 0.0) -> Predictor:
    """The same after many requests, which measured its parts, with an empty cache."""
    predictor = ensemble(clock=clock, pass_s=pass_s, first_s=first_s)
    for _ in range(40):
        predictor.predict(["warm up"], [AUTO, "first", "second"], use_cache=False)
    return predictor


def budget(clock: StandingClock, limit_s: float) -> Deadline:
    return Deadline(limit_s, clock, is_budget=True)


probabilities = st.lists(st.floats(0, 1, width=32), min_size=4, max_size=4)
weights_of = st.dictionaries(st.sampled_from("abcde"), st.floats(0.01, 1), min_size=1)
texts_to_classify = st.lists(st.text("ab c", max_size=9), min_size=1, max_size=8)


@given(weights_of, st.data())
def test_the_mean_of_probabilities_is_one(weights: dict[str, float], data: st.DataObject) -> None:
    """Means of probabilities are probabilities that sum to one, whatever the weights sum to."""
    answers = {}
    for name in weights:
        row = [value + 0.01 for value in data.draw(probabilities)]
        answers[name] = [to_vector([*(value / sum(row) for value in row), 0.5])]
    (mean,) = mean_answers(answers, weights)
    *values, _ = to_floats(mean)
    assert math.isclose(sum(values), 1, abs_tol=1e-6)
    assert min(values) >= 0


@given(weights_of, st.data())
def test_order_changes_no_bit(weights: dict[str, float], data: st.DataObject) -> None:
    """The members' order changes no bit of the mean."""
    answers = {name: [to_vector([*data.draw(probabilities), 0.5])] for name in weights}
    other = dict(data.draw(st.permutations(list(weights.items()))))
    assert mean_answers(answers, weights) == mean_answers(answers, other)


@given(st.sampled_from(NAMES), st.floats(0.01, 1), texts_to_classify)
def test_one_member_is_the_head(name: str, weight: float, texts: list[str]) -> None:
    """An ensemble of one member answers as that member, to the bit, with the same score."""
    predictor = ensemble({name: weight})
    prediction = predictor.predict(texts, [ENSEMBLE, name])
    assert prediction.answers[ENSEMBLE] == prediction.answers[name]
    assert prediction.members == (name,)


@given(texts_to_classify)
def test_the_mean_of_the_members(texts: list[str]) -> None:
    """Each probability is the weighted mean of the members', which answer as they do by name."""
    predictor = ensemble()
    named = predictor.predict(texts, NAMES).answers
    rows = predictor.predict(texts, [ENSEMBLE]).answers[ENSEMBLE]
    for index, row in enumerate(rows):
        members = {name: to_floats(named[name][index]) for name in NAMES}
        *values, score = to_floats(row)
        for label, value in enumerate(values):
            expected = sum(WEIGHTS[name] * members[name][label] for name in NAMES)
            assert math.isclose(value, expected, abs_tol=1e-6)
        assert score == members["second"][-1]


@given(texts_to_classify, texts_to_classify)
def test_company_and_cache_change_nothing(first: list[str], second: list[str]) -> None:
    """A text has one answer, to the bit: alone, in company, and with some or all members from the cache."""
    caching = ensemble()
    for texts, heads in ((first, [AUTO, "second"]), (second, [ENSEMBLE]), (first, ["first", ENSEMBLE])):
        rows = caching.predict(texts, heads).answers.get(ENSEMBLE, [])
        for text, row in zip(texts, rows, strict=False):
            alone = ensemble(cache=PredictionCache(0)).predict([text], [ENSEMBLE])
            assert alone.answers[ENSEMBLE] == [row]
    assert caching.predict(second, [ENSEMBLE]).usage.cache.miss == 0


def test_only_requested_heads_are_returned() -> None:
    """Members that the request does not name are no answers of it, and others keep their order."""
    assert list(ensemble().predict([SURE], ["first", ENSEMBLE]).answers) == ["first", ENSEMBLE]


def test_a_model_without_weights_refuses() -> None:
    """A model from before there were weights lists the heads that it has."""
    predictor = tiny_predictor()
    with pytest.raises(Invalid, match=r'"ensemble" is not a head of this model.*auto, first, second\.'):
        predictor.check_heads([ENSEMBLE])
    ensemble().check_heads([ENSEMBLE])


times = st.dictionaries(st.sampled_from("abcde"), st.floats(0, 1), min_size=1)


@given(times, st.floats(-1, 3), st.data())
def test_the_cheapest_fit_in(times_s: dict[str, float], left_s: float, data: st.DataObject) -> None:
    """At least one member is kept; all fit in, else the one of least time per weight is alone."""
    weights = {name: data.draw(st.floats(0.01, 1)) for name in times_s}
    kept = cheapest(times_s, weights, left_s)
    first = min(times_s[name] / weights[name] for name in times_s)
    assert times_s[kept[0]] / weights[kept[0]] == first
    assert len(kept) == 1 or sum(times_s[name] for name in kept) <= left_s + 1e-9
    if sum(times_s.values()) <= left_s:
        assert set(kept) == set(times_s)


def test_members_that_do_not_fit_are_left_out() -> None:
    """A member that is too slow is left out, and the others' weights are scaled to one."""
    clock = StandingClock()
    predictor = warmed(clock, first_s=5.0)
    cut = predictor.predict([UNSURE], [ENSEMBLE], deadline=budget(clock, 2.0))
    assert cut.members == (AUTO, "second")
    assert (cut.is_whole, cut.is_rushed) == (False, True)
    other = ensemble({AUTO: 0.625, "second": 0.375}).predict([UNSURE], [ENSEMBLE])
    assert to_floats(cut.answers[ENSEMBLE][0]) == pytest.approx(to_floats(other.answers[ENSEMBLE][0]))
    whole = predictor.predict([UNSURE], [ENSEMBLE], deadline=budget(clock, HOUR_S))
    assert whole.is_whole


def test_no_encoder_no_heads() -> None:
    """Where the encoder does not fit in, `auto` answers alone, by the estimator."""
    clock = StandingClock()
    predictor = warmed(clock, pass_s=10.0)
    prediction = predictor.predict([SURE, UNSURE], [ENSEMBLE], deadline=budget(clock, 1.0))
    assert prediction.members == (AUTO,)
    assert prediction.usage.batches == 0
    guess = predictor.predict([SURE], [AUTO], use_cache=False)
    assert prediction.answers[ENSEMBLE][0] == guess.answers[AUTO][0]


def test_a_late_encoder() -> None:
    """Where the encoder takes longer than it used to, `auto` answers alone."""
    clock = StandingClock()
    predictor = warmed(clock)
    encoder = predictor.tokenizer
    assert isinstance(encoder, TimedEncoder)
    encoder.pass_s = 1.02
    deadline = budget(clock, 1.0)
    prediction = predictor.predict(["abc", "a", "abcde"], [ENSEMBLE], deadline=deadline)
    assert prediction.members == (AUTO,)
    assert not prediction.is_whole


def test_without_auto_it_fails_by_name() -> None:
    """Without `auto` among the members nothing can answer without the encoder."""
    clock = StandingClock()
    predictor = ensemble({"first": 0.5, "second": 0.5}, clock)
    with pytest.raises(OutOfTime, match="too little"):
        predictor.predict([UNSURE], [ENSEMBLE], deadline=budget(clock, 0.0))
    with pytest.raises(OutOfTime, match="too little"):
        ensemble().predict([UNSURE], [ENSEMBLE, "first"], deadline=budget(clock, 0.0))


def test_without_a_budget_all_members_answer() -> None:
    """The platform's own limit leaves no member out: the request fails instead."""
    clock = StandingClock()
    predictor = warmed(clock, first_s=5.0)
    assert predictor.predict([UNSURE], [ENSEMBLE], deadline=Deadline(2.0, clock)).is_whole
    with pytest.raises(OutOfTime):
        warmed(clock, pass_s=10.0).predict([UNSURE], [ENSEMBLE], deadline=Deadline(1.0, clock))


@given(texts_to_classify, texts_to_classify)
def test_cut_answers_never_mix(first: list[str], second: list[str]) -> None:
    """After an answer of fewer members, the whole ensemble answers as it does without a cache."""
    clock = StandingClock()
    predictor = warmed(clock, first_s=5.0)
    predictor.predict(first, [ENSEMBLE], deadline=budget(clock, 2.0))
    whole = predictor.predict([*first, *second], [ENSEMBLE])
    plain = ensemble(cache=PredictionCache(0)).predict([*first, *second], [ENSEMBLE])
    assert whole.is_whole
    assert whole.answers == plain.answers


def test_cached_members_take_no_time() -> None:
    """A text whose members are all in the cache has its whole answer within any budget."""
    clock = StandingClock()
    predictor = warmed(clock, first_s=5.0, pass_s=10.0)
    whole = predictor.predict([UNSURE], [ENSEMBLE])
    again = predictor.predict([UNSURE], [ENSEMBLE], deadline=budget(clock, 0.001))
    assert again.is_whole
    assert again.answers == whole.answers


def ask(predictor: Predictor, **fields: Any) -> dict[str, Any]:
    api = Api(served(predictor), Settings(log_level="off"), StartMark(is_warm=True))
    reply = post(api, fields)
    assert reply.status == 200, reply.body
    answer: dict[str, Any] = json.loads(reply.body)
    return answer


def test_the_answer_names_its_members() -> None:
    """The reply says which heads took part, and that fewer are an answer for lack of time."""
    clock = StandingClock()
    (text,) = ask(ensemble(), text=UNSURE, heads=[ENSEMBLE, AUTO])["predictions"]
    assert text["heads"][ENSEMBLE]["members"] == NAMES
    assert {"by", "rushed"}.isdisjoint(text["heads"][ENSEMBLE])
    assert text["heads"][AUTO]["by"] == "ensemble"
    assert "members" not in text["heads"][AUTO]
    slow = warmed(clock, pass_s=HOUR_S)
    (cut,) = ask(slow, text=SURE, heads=[ENSEMBLE], budget_ms=1)["predictions"]
    assert (cut["heads"][ENSEMBLE]["members"], cut["heads"][ENSEMBLE]["rushed"]) == ([AUTO], True)


def test_jobs_and_sql_take_no_cut_answer() -> None:
    """A job and a query have the whole ensemble or fail: their answers are repeatable."""
    clock = StandingClock()
    slow = warmed(clock, pass_s=10.0)
    with pytest.raises(OutOfTime):
        predict_column(slow, [UNSURE], [ENSEMBLE], deadline=Deadline(1.0, clock))
    column = predict_column(slow, [UNSURE, None], [ENSEMBLE])[ENSEMBLE]
    refuse_rushed(column)
    assert column[0] is not None
    assert column[1] is None
    options = Options("topics", (ENSEMBLE,))
    with pytest.raises(OutOfTime):
        ModelAnswerer(served(slow)).answer(["new"], options, Deadline(1.0, clock))
    (row,) = ModelAnswerer(served(slow)).answer([UNSURE], options, NO_DEADLINE).rows
    assert row.heads[ENSEMBLE].members == NAMES


def test_an_objective_may_choose_it() -> None:
    """The ensemble is an arm with its own accuracy; its members' time is added to the encoder's."""
    clock = StandingClock()
    predictor = warmed(clock, first_s=5.0)
    predictor.manifest = replace(
        predictor.manifest, figures=Figures(100, 0.5, (0.4, 0.6), 0.5, 0.0, 0.5, 0.4)
    )
    arms = {arm.head: arm for arm in arms_of(predictor, [UNSURE], NO_DEADLINE)}
    assert arms[ENSEMBLE].accuracy == 0.6
    assert arms[ENSEMBLE].request_ms >= arms["first"].request_ms + 5000


def test_wherever_heads_are_listed() -> None:
    """The OpenAPI document, the list of models and the Open Inference Protocol know the head."""
    api = Api(served(ensemble()), Settings(log_level="off"), StartMark(is_warm=True))

    def get(path: str) -> Any:
        return json.loads(api.answer(Request("GET", path)).body)

    cards = {card["id"]: card for card in get("/v1/models")["data"]}
    assert cards["topics"]["heads"][ENSEMBLE] == {"accuracy": {"text": 0.6}}
    assert cards["topics-ensemble"]["labels"]
    assert [tensor["name"] for tensor in get("/v2/models/topics-ensemble")["inputs"]] == ["text"]
    texts = {"name": "text", "shape": [1], "datatype": "BYTES", "data": [UNSURE]}
    reply = post(api, {"inputs": [texts]}, "/v2/models/topics-ensemble/infer")
    (text,) = ask(ensemble(), text=UNSURE, heads=[ENSEMBLE])["predictions"]
    assert json.loads(reply.body)["outputs"][0]["data"] == [text["heads"][ENSEMBLE]["label"]]


@pytest.mark.parametrize("weights", [{}, {"third": 1.0}, {AUTO: 0.0}, {AUTO: -1.0, "first": 2.0}])
def test_weights_of_no_use(weights: dict[str, float]) -> None:
    """Weights of unknown members, or of none, are a corrupt model."""
    with pytest.raises(BundleCorrupt, match="positive ones"):
        check_members(replace(tiny_manifest(), ensemble=EnsembleFacts(weights, {}, 0.0)))
