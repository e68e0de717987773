"""The function answers, as API Gateway calls it."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

MODELS = Path(__file__).parents[1] / "models"
EVENT = json.loads(Path(__file__).with_name("event.json").read_text())


@pytest.fixture(scope="session")
def labels() -> list[str]:
    """Labels of the model, from its manifest."""
    labels: list[str] = json.loads((MODELS / "tickets" / "manifest.json").read_text())["labels"]
    return labels


def call(body: object) -> dict[str, Any]:
    """Answer of the function to one request."""
    os.environ.update(COLDFRAME_MODEL_DIR=str(MODELS), COLDFRAME_LOG_LEVEL="off")
    from app import handler

    context = SimpleNamespace(aws_request_id="1", get_remaining_time_in_millis=lambda: 5_000)
    answer: dict[str, Any] = handler(EVENT | {"body": json.dumps(body)}, context)
    return answer


def test_a_text_gets_a_label(labels: list[str]) -> None:
    """Each text has one prediction, with a label of the model."""
    answer = call({"texts": ["The parcel never arrived.", "I cannot sign in."]})
    assert answer["statusCode"] == 200
    predictions = json.loads(answer["body"])["predictions"]
    assert [prediction["heads"]["auto"]["label"] in labels for prediction in predictions] == [True, True]


def test_a_wrong_request_is_refused() -> None:
    """A request without a text is an error of its caller."""
    assert 400 <= call({"words": "hello"})["statusCode"] < 500
