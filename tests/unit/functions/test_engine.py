"""What an environment does before its first request."""

import json
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coldframe_functions.predict.engine import Engine
from coldframe_functions.predict.priming import prime
from tests.conftest import EXAMPLE, ROOT, SECOND
from tests.support.example import SPACE

EVENT = json.loads((ROOT / "tests" / "events" / "http_api_predict.json").read_text())
CONTEXT = SimpleNamespace(aws_request_id="1", get_remaining_time_in_millis=lambda: 290_000)
AHEAD = {"AWS_LAMBDA_INITIALIZATION_TYPE": "provisioned-concurrency"}
BESIDE_OTHERS = {
    "AWS_LAMBDA_INITIALIZATION_TYPE": "lambda-managed-instances",
    "AWS_LAMBDA_MAX_CONCURRENCY": "16",
}


@pytest.mark.parametrize(
    ("environ", "passes"),
    [(AHEAD, 4), ({}, 1), ({**AHEAD, "COLDFRAME_MAX_BATCH_TOKENS": "300"}, 1), (BESIDE_OTHERS, 1)],
    ids=["ahead of traffic", "on demand", "set", "beside other processes"],
)
def test_budget_is_measured_ahead_of_traffic(
    bundle: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], passes: int
) -> None:
    """Where nobody waits for the init phase, and no setting says otherwise, the measured budget is used."""
    monkeypatch.setattr("coldframe.model.encoder.measure_budget", lambda encode, default, clock: 1)
    engine = Engine({"COLDFRAME_MODEL_DIR": str(bundle), **environ})
    texts = [f"The shuttle reached {place}" for place in ("orbit", "space", "earth", "home")]
    event = {**EVENT, "body": json.dumps({"texts": texts, "heads": ["logreg"]}), "isBase64Encoded": False}
    answer = json.loads(engine.handle_event(event, CONTEXT)["body"])
    assert answer["usage"]["batches"] == passes


def test_priming_asks_every_model(two_models: Path) -> None:
    """Ahead of traffic each model is loaded, and asked by each of its heads on each route."""
    served = {"COLDFRAME_MODEL_DIR": str(two_models), "COLDFRAME_MODELS": f"{EXAMPLE},{SECOND}"}
    engine = Engine({**served, **AHEAD})
    models = engine.api.models
    asked: list[tuple[str, dict[str, Any]]] = []

    def handle(event: Mapping[str, Any], context: Any) -> Mapping[str, Any]:
        asked.append((event["rawPath"], json.loads(event.get("body") or "{}")))
        response: Mapping[str, Any] = engine.handle_event(event, context)
        return response

    prime(handle)
    for predictor in models.all():
        name, heads = predictor.manifest.name, list(predictor.manifest.named_heads)
        named = [(path, body) for path, body in asked if body.get("model") == name]
        assert {path for path, _ in named} == {"/v1/predict", "/v1/embeddings"}
        assert all(body["heads"] == ["auto", *heads] for path, body in named if path == "/v1/predict")
        assert f"/v2/models/{name}-{heads[0]}/infer" in {path for path, _ in asked}


def test_a_batch_of_a_database(bundle: Path) -> None:
    """A direct invocation by Redshift is answered as its documentation has it: JSON in a string."""
    engine = Engine({"COLDFRAME_MODEL_DIR": str(bundle)})
    rows = [["NASA launched the shuttle into orbit"], [None]]
    event = {"request_id": "1", "external_function": "public.f_topic", "num_records": 2, "arguments": rows}
    answer = json.loads(engine.handle_event(event, CONTEXT))
    assert answer == {"success": True, "num_records": 2, "results": [SPACE, None]}


@pytest.fixture(scope="module")
def traced_engine(bundle: Path) -> Engine:
    return Engine({"COLDFRAME_MODEL_DIR": str(bundle), "COLDFRAME_TRACES": "log"})


@pytest.mark.parametrize("control", ["\n", "\r\n", "\r", "\x00", "\x0b", "\x1b[2J", "\x7f", "\x85", "\u2028"])
@pytest.mark.parametrize("name", ["traceparent", "x-amzn-trace-id", "x-request-id", "user-agent"])
def test_a_header_forges_no_line_of_the_log(
    traced_engine: Engine, capsys: pytest.CaptureFixture[str], name: str, control: str
) -> None:
    """Line feeds and control characters in a header add no line, and none of the header is logged."""
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    for header in (f'{trace}{control}{{"event": "forged"}}', f"forged{control}"):
        event = {**EVENT, "headers": {**EVENT["headers"], name: header}}
        assert traced_engine.handle_event(event, CONTEXT)["statusCode"] == 200
    output = capsys.readouterr().out
    lines = [json.loads(line) for line in output.rstrip("\n").split("\n")]
    assert [line["event"] for line in lines] == ["request", "request"]
    assert "forged" not in output
    assert not any(unicodedata.category(letter) == "Cc" for letter in output.replace("\n", ""))
