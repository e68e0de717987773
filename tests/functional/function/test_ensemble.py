"""The head `ensemble` of the example, on the real model and in every home."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from coldframe.api.api import Api
from coldframe.columns import predict_column
from coldframe.config import Settings
from coldframe.jobs.records import Options
from coldframe.model.bundle import EnsembleFacts, Manifest
from coldframe.model.files import AUTO, ENSEMBLE
from coldframe.pipeline.models import Models, load_models, load_predictor
from coldframe.timing import NO_DEADLINE, StartMark
from coldframe_functions.jobs.answering import ModelAnswerer
from tests.conftest import post

TEXTS = [
    "The shuttle reached orbit",
    "He struck out nine batters in seven innings",
    "Which cipher is safe? " * 200,
    "hockey",
    "",
]
WORSE_AT_MOST = 0.005
"""Accuracy that the ensemble may lack beside its best member: less is chance on 7,532 rows."""


@pytest.fixture(scope="module")
def models(bundle: Path) -> Models:
    return load_models(Settings(model_dir=bundle, log_level="off"))


def facts_of(manifest: Manifest) -> EnsembleFacts:
    assert manifest.ensemble
    return manifest.ensemble


def ask(models: Models, **body: Any) -> list[dict[str, Any]]:
    reply = post(Api(models, Settings(log_level="off"), StartMark(is_warm=True)), body)
    assert reply.status == 200, reply.body
    return [answer["heads"] for answer in json.loads(reply.body)["predictions"]]


def test_weights_of_the_example(models: Models) -> None:
    """The example's weights sum to one, and the ensemble is about as good as its best member."""
    manifest = models.default.manifest
    facts = facts_of(manifest)
    assert sum(facts.weights.values()) == pytest.approx(1, abs=0.001)
    for form, reached in facts.accuracy.items():
        best = max(
            manifest.estimator.auto_accuracy[form] if name == AUTO else manifest.heads[name].accuracy[form]
            for name in facts.weights
        )
        assert reached >= best - WORSE_AT_MOST


def test_the_mean_of_what_the_members_say(models: Models) -> None:
    """Each score is the weighted mean of the members' scores, as the API returns them."""
    weights = facts_of(models.default.manifest).weights
    for heads in ask(models, texts=TEXTS, heads=[ENSEMBLE, *weights], scores=True):
        assert heads[ENSEMBLE]["members"] == list(weights)
        for label, value in heads[ENSEMBLE]["scores"].items():
            expected = sum(weight * heads[name]["scores"][label] for name, weight in weights.items())
            assert math.isclose(value, expected / sum(weights.values()), abs_tol=1e-6)


def test_one_answer_in_every_home(models: Models) -> None:
    """The API, tables and jobs give a text the same answer, to the bit, from the cache or not."""
    answers = [heads[ENSEMBLE] for heads in ask(models, texts=TEXTS, heads=[ENSEMBLE])]
    assert answers == [ask(models, text=text, heads=[ENSEMBLE])[0][ENSEMBLE] for text in TEXTS]
    assert answers == [heads[ENSEMBLE] for heads in ask(models, texts=TEXTS, heads=[ENSEMBLE], cache=False)]
    column = predict_column(models.default, TEXTS, [ENSEMBLE], use_cache=False)[ENSEMBLE]
    assert [row and row.probability for row in column] == [answer["probability"] for answer in answers]
    assert [row and row.label for row in column] == [answer["label"] for answer in answers]
    jobs = ModelAnswerer(models).answer(TEXTS, Options("topics", (ENSEMBLE,)), NO_DEADLINE).rows
    assert [row.heads[ENSEMBLE].probability for row in jobs] == [answer["probability"] for answer in answers]


def test_short_of_time(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the encoder is too slow for the budget, fewer members answer; without a budget, all do."""
    with monkeypatch.context() as slow:
        slow.setattr(models.default.model.encoder.ms_per_token, "value", 1e6)
        (cut,) = ask(models, text="A text for this test", heads=[ENSEMBLE], budget_ms=60_000)
    assert (cut[ENSEMBLE]["members"], cut[ENSEMBLE]["rushed"]) == ([AUTO], True)
    (whole,) = ask(models, text="A text for this test", heads=[ENSEMBLE])
    assert whole[ENSEMBLE]["members"] == list(facts_of(models.default.manifest).weights)
    assert "rushed" not in whole[ENSEMBLE]


def test_a_model_from_before(bundle: Path) -> None:
    """A model without weights keeps its digest's form, and refuses the head with 422."""
    predictor = load_predictor(Settings(model_dir=bundle, log_level="off"))
    older = replace(predictor.manifest, ensemble=UNSET)
    assert b"ensemble" not in older.encode()
    predictor.manifest = older
    del predictor.min_probability[ENSEMBLE]
    api = Api(Models({"topics": predictor}), Settings(log_level="off"), StartMark(is_warm=True))
    reply = post(api, {"text": "hockey", "heads": [ENSEMBLE]})
    assert reply.status == 422
    assert b"Request one of: auto, hgb, logreg, mlp, rf." in reply.body
