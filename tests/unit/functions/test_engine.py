"""What an environment does before its first request."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from functions.predict.engine import Engine
from tests.conftest import ROOT

EVENT = json.loads((ROOT / "tests" / "events" / "http_api_predict.json").read_text())
CONTEXT = SimpleNamespace(aws_request_id="1", get_remaining_time_in_millis=lambda: 290_000)
AHEAD = {"AWS_LAMBDA_INITIALIZATION_TYPE": "provisioned-concurrency"}


@pytest.mark.parametrize(
    ("environ", "passes"),
    [(AHEAD, 4), ({}, 1), ({**AHEAD, "COLDFRAME_MAX_BATCH_TOKENS": "300"}, 1)],
    ids=["ahead of traffic", "on demand", "set"],
)
def test_budget_is_measured_ahead_of_traffic(
    bundle: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], passes: int
) -> None:
    """Where nobody waits for the init phase, and no setting says otherwise, the measured budget is used."""
    monkeypatch.setattr("coldframe.model.model.measure_budget", lambda encode, default, clock: 1)
    engine = Engine({"COLDFRAME_MODEL_DIR": str(bundle), **environ}, has_answered=False)
    texts = [f"The shuttle reached {place}" for place in ("orbit", "space", "earth", "home")]
    event = {**EVENT, "body": json.dumps({"texts": texts, "heads": ["logreg"]}), "isBase64Encoded": False}
    answer = json.loads(engine.handle_event(event, CONTEXT)["body"])
    assert answer["usage"]["batches"] == passes
