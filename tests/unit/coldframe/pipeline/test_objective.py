"""Objectives: the cheapest head that keeps every bound, and the answer that says which one and why."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from coldframe.api.api import Api
from coldframe.config import Settings
from coldframe.errors import Invalid
from coldframe.model.bundle import HeadFacts
from coldframe.pipeline.objective import Arm, arms_of, choose_arm, reaches, usd_per_million
from coldframe.pipeline.predictor import Predictor
from coldframe.schemas import Figures, Objective
from coldframe.timing import NO_DEADLINE, StartMark
from tests.conftest import post, served, tiny_predictor

USD_PER_HOUR = 36.0  # a cent a second: a million texts of 1 ms cost 10 USD
AUTO_RIGHT, HEADS_RIGHT, ALONE = 0.8, {"first": 0.7, "second": 0.85}, 0.5

accuracies = st.floats(0, 1)
objectives = st.builds(Objective, accuracies, st.integers(1, 20), st.floats(0, 200))


def measured(
    auto: float = AUTO_RIGHT,
    heads: dict[str, float] = HEADS_RIGHT,
    ms_per_token: float = 1.0,
    alone: float = ALONE,
    name: str = "topics",
) -> Predictor:
    """A model with a report, and an encoder that takes this long for a token."""
    predictor = tiny_predictor()
    facts = {head: HeadFacts({"full": 1.0, "stripped": right}, right, {}) for head, right in heads.items()}
    figures = Figures(100, auto, (auto, auto), auto, 0.0, alone, 0.5)
    predictor.manifest = replace(predictor.manifest, name=name, heads=facts, figures=figures)
    predictor.model.encoder.ms_per_token.forget()
    predictor.model.encoder.ms_per_token._prior = predictor.model.encoder.ms_per_token.value = ms_per_token
    return predictor


def api_of(*predictors: Predictor) -> Api:
    settings = Settings(usd_per_hour=USD_PER_HOUR, l1_cache_bytes=0, log_level="off")
    return Api(served(*predictors), settings, StartMark(is_warm=True))


def send(objective: dict[str, Any], *predictors: Predictor, **more: Any) -> tuple[int, dict[str, Any]]:
    reply = post(api_of(*predictors or (measured(),)), {"text": "ab", "objective": objective, **more})
    return reply.status, json.loads(reply.body)


def arms(*predictors: Predictor, text: str = "ab") -> list[Arm]:
    return [arm for one in predictors for arm in arms_of(one, [text], NO_DEADLINE)]


@given(objectives, accuracies, accuracies, accuracies, st.floats(0.01, 5), st.floats(0, 1))
def test_the_cheapest_that_reaches_it(
    objective: Objective, auto: float, first: float, second: float, ms_per_token: float, alone: float
) -> None:
    """The chosen head keeps every bound, and no cheaper one does. Where none does, none is chosen."""
    predictor = measured(auto, {"first": first, "second": second}, ms_per_token, alone)
    reaching = [arm for arm in arms(predictor) if reaches(arm, objective, USD_PER_HOUR)]
    if not reaching:
        with pytest.raises(Invalid, match="No head reaches"):
            choose_arm([predictor], ["ab"], objective, USD_PER_HOUR, NO_DEADLINE)
        return
    chosen, choice = choose_arm([predictor], ["ab"], objective, USD_PER_HOUR, NO_DEADLINE)
    assert chosen in reaching
    assert all(chosen.text_ms <= arm.text_ms for arm in reaching)
    assert (choice.model, choice.head) == ("topics", chosen.head)
    assert choice.accuracy >= objective.accuracy  # type: ignore[operator]


@given(objectives)
def test_ties_are_settled_in_one_way(objective: Objective) -> None:
    """Of equally cheap heads the most accurate is chosen, then the first: in each environment the same."""
    equal = {"first": 0.7, "second": 0.7}
    predictors = [measured(0.1, equal, name="one"), measured(0.1, {**equal, "second": 0.9}, name="two")]
    try:
        chosen = {
            choose_arm(predictors, ["ab"], objective, USD_PER_HOUR, NO_DEADLINE)[0].head for _ in range(3)
        }
    except Invalid:
        return
    assert len(chosen) == 1


def test_equal_heads() -> None:
    """The first of two equal heads answers."""
    _, answer = send({"accuracy": 0.5}, measured(0.1, {"first": 0.7, "second": 0.7}))
    assert answer["objective"]["head"] == "first"


def test_auto_is_cheaper_by_its_share() -> None:
    """`auto` is expected to need the encoder for the share of texts that the estimator leaves to it."""
    auto, first, _ = arms(measured())
    assert auto.text_ms == pytest.approx(first.text_ms * (1 - ALONE))
    assert usd_per_million(first, USD_PER_HOUR) == pytest.approx(10 * first.text_ms)


def test_accuracy_is_the_lowest_of_its_forms() -> None:
    """A head that was tested on full and on stripped texts counts by the worse result."""
    assert [arm.accuracy for arm in arms(measured())] == [AUTO_RIGHT, *HEADS_RIGHT.values()]


def test_the_answer_says_which_and_why() -> None:
    """The head is in the answer with its accuracy, time, price and reason."""
    status, answer = send({"accuracy": 0.75})
    assert status == 200
    assert list(answer["predictions"][0]["heads"]) == ["auto"]
    choice = answer["objective"]
    assert (choice["model"], choice["head"], choice["accuracy"]) == ("topics", "auto", AUTO_RIGHT)
    assert choice["because"].startswith("2 of 3 heads")


def test_more_accuracy_costs_more() -> None:
    """A higher bound chooses a dearer head; across models, too."""
    _, cheap = send({"accuracy": 0.75})
    _, dear = send({"accuracy": 0.82})
    assert (cheap["objective"]["head"], dear["objective"]["head"]) == ("auto", "second")
    assert cheap["objective"]["usd_per_million"] < dear["objective"]["usd_per_million"]
    other = measured(0.99, name="other", ms_per_token=9.0)
    status, answer = send({"accuracy": 0.95}, measured(), other)
    assert (status, answer["model"]) == (200, "other")


@pytest.mark.parametrize(
    "objective", [{"accuracy": 0.99}, {"budget_ms": 1, "accuracy": 0.82}, {"usd_per_million": 0.001}]
)
def test_none_reaches_it(objective: dict[str, float]) -> None:
    """Where no head does, the request is refused, and the best head is named with what it reaches."""
    status, problem = send(objective)
    assert status == 422
    assert "`second` of the model `topics`: accuracy 0.850" in problem["detail"]


@pytest.mark.parametrize(
    ("objective", "more"),
    [
        ({"accuracy": 0.5}, {"heads": ["first"]}),
        ({"accuracy": 0.5}, {"budget_ms": 100}),
        ({}, {}),
        ({"accuracy": 2}, {}),
        ({"price": 1}, {}),
    ],
)
def test_contradictions(objective: dict[str, float], more: dict[str, Any]) -> None:
    """Heads or a budget beside an objective, an empty one, and unknown or impossible bounds are invalid."""
    assert send(objective, **more)[0] == 422


def test_a_model_without_a_report() -> None:
    """A model whose accuracy nobody measured has no arms, and the request is refused."""
    predictor = measured(heads={})
    predictor.manifest = replace(predictor.manifest, figures=None)
    status, problem = send({"budget_ms": 100}, predictor)
    assert status == 422
    assert "report" in problem["detail"]


def test_a_named_model_keeps_others_out() -> None:
    """With `model`, only its heads compete, though another model has a better one."""
    status, _ = send({"accuracy": 0.95}, measured(), measured(0.99, name="other"), model="topics")
    assert status == 422


def test_without_an_objective_nothing_changes() -> None:
    """The answer has no such field, and the module is not needed."""
    reply = post(api_of(measured()), {"text": "ab"})
    assert "objective" not in json.loads(reply.body)
