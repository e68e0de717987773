"""What the function answers to a batch of a Distributed Map."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coldframe_functions.predict.answer_batch import BatchFailed, BatchRefused
from coldframe_functions.predict.engine import Engine
from tests.conftest import ROOT

CONTEXT = SimpleNamespace(aws_request_id="1", get_remaining_time_in_millis=lambda: 290_000)
HTTP = json.loads((ROOT / "tests" / "events" / "http_api_predict.json").read_text())


@pytest.fixture(scope="module")
def engine(bundle: Path) -> Engine:
    return Engine({"COLDFRAME_MODEL_DIR": str(bundle)})


def batch(*rows: Any, **settings: Any) -> dict[str, Any]:
    return {"Items": [{"id": n, "row": row} for n, row in enumerate(rows)], "BatchInput": settings}


def test_each_item_gets_the_answer_of_its_text(engine: Engine) -> None:
    """Rows are answered in order as `POST /v1/predict` answers their texts; a row without text gets null."""
    texts = ["The shuttle reached orbit", "He struck out nine batters", "The shuttle reached orbit"]
    rows = [{"body": texts[0]}, {"body": None}, texts[1], None, {"body": texts[2]}]
    results = engine.handle_event(batch(*rows, text="body", heads=["auto", "rf"]), CONTEXT)["Results"]
    event = {**HTTP, "body": json.dumps({"texts": texts, "heads": ["auto", "rf"]}), "isBase64Encoded": False}
    answered = json.loads(engine.handle_event(event, CONTEXT)["body"])["predictions"]
    assert [result["id"] for result in results] == [0, 1, 2, 3, 4]
    assert [results[n]["heads"] for n in (0, 2, 4)] == [answer["heads"] for answer in answered]
    assert results[1]["heads"] is results[3]["heads"] is None


def test_rows_without_texts_ask_no_model(engine: Engine) -> None:
    """A batch of empty cells is answered."""
    assert engine.handle_event(batch(None, {"text": None}), CONTEXT) == {
        "Results": [{"id": 0, "version": None, "heads": None}, {"id": 1, "version": None, "heads": None}]
    }


def test_rows_name_the_version_that_answered(engine: Engine) -> None:
    """Each row has the model's version, also one without text."""
    version = json.loads(
        engine.handle_event({**HTTP, "body": '{"text": "orbit"}', "isBase64Encoded": False}, CONTEXT)["body"]
    )["version"]
    results = engine.handle_event(batch("orbit", None, version=version), CONTEXT)["Results"]
    assert [result["version"] for result in results] == [version, version]


def test_a_batch_continues_the_trace_of_its_run(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The log line of a batch has the trace of whoever started the run; a malformed header is ignored."""
    engine = Engine({"COLDFRAME_MODEL_DIR": str(bundle), "COLDFRAME_TRACES": "log"})
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    for header in (f"00-{trace}-00f067aa0ba902b7-01", "broken"):
        engine.handle_event(batch("orbit", traceparent=header), CONTEXT)
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines() if "trace_id" in line)
    assert (first["trace_id"], first["parent_span_id"]) == (trace, "00f067aa0ba902b7")
    assert second["trace_id"] != trace


def test_another_version_is_refused(engine: Engine) -> None:
    """A run that was started with another model gets no answers of this one."""
    with pytest.raises(BatchRefused, match="expected the run's first one: the function was deployed"):
        engine.handle_event(batch("orbit", version="sha256:0"), CONTEXT)


def test_answers_over_the_limit_of_a_child_are_refused(engine: Engine) -> None:
    """Answers of more than 256 KiB end the run with the batch that would fit."""
    heads = ["auto", "logreg", "rf", "hgb", "mlp"]
    with pytest.raises(
        BatchRefused, match=r"Step Functions takes 262,144\. Start the run with --batch \d+\."
    ) as caught:
        engine.handle_event(batch(*["orbit"] * 1000, heads=heads), CONTEXT)
    fitting = int(str(caught.value).rsplit(" ", 1)[1].rstrip("."))
    assert len(engine.handle_event(batch(*["orbit"] * fitting, heads=heads), CONTEXT)["Results"]) == fitting


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (batch({"body": "secret"}), "Item 0 has no column with the requested name"),
        (batch({"body": ""}, text="secret"), "Item 0 has no column with the requested name"),
        (batch({"text": 7}), "Item 0 has a text of type int, expected a string"),
        ({"Items": [{"id": "secret", "row": 7}]}, "An item has a text of type int"),
        (
            batch("secret", heads=["secret"]),
            "422: What was sent is not a head of this model. Request one of: auto",
        ),
        (batch("secret", model="secret"), "404: What was sent is not a model here"),
        (batch("", version="secret"), "expected the run's first one"),
        (batch(*["secret"] * 2000), "413"),
    ],
)
def test_what_would_be_refused_again_is_refused(engine: Engine, event: Any, message: str) -> None:
    """The error's name says that no retry helps, and its message repeats nothing from the event."""
    with pytest.raises(BatchRefused, match=message) as caught:
        engine.handle_event(event, CONTEXT)
    assert "secret" not in str(caught.value)


def test_a_batch_out_of_time_may_be_sent_again(engine: Engine) -> None:
    """A named head that has no time left raises the error that is retried."""
    hurried = SimpleNamespace(aws_request_id="1", get_remaining_time_in_millis=lambda: 0)
    with pytest.raises(BatchFailed, match="503"):
        engine.handle_event(batch("An unseen text of this test", heads=["rf"]), hurried)
