"""Lambda Managed Instances, by AWS's own runtime client: many invocations at once, the answers of one."""

import json
from pathlib import Path
from typing import Any

from coldframe.api.gateway_event import http_event
from coldframe.pipeline.predictor import Predictor
from tests.support.managed_instance import managed_instance

PROCESSES = 4
TEXTS = [f"The {n}th shuttle reached orbit while the goalie slept" for n in range(PROCESSES)]


def test_invocations_at_once_have_the_answers_of_one(bundle: Path, predictor: Predictor) -> None:
    """Four processes poll, get an invocation each at once, and answer as the model does alone, to the bit."""
    events = [
        http_event("POST", "/v1/predict", {"text": text, "heads": ["mlp"], "scores": True}) for text in TEXTS
    ]
    with managed_instance(PROCESSES, COLDFRAME_MODEL_DIR=str(bundle)) as instance:
        answers: list[Any] = []
        for _ in range(3):
            answers += instance.invoke_at_once(events)
    assert {answer["statusCode"] for answer in answers} == {200}
    bodies = [json.loads(answer["body"]) for answer in answers]
    assert {body["start"] for body in bodies} == {"warm"}  # every process was ready before the first one
    labels = predictor.manifest.labels
    for text, body in zip(TEXTS * 3, bodies, strict=True):
        row = memoryview(predictor.predict([text], ["mlp"], False).answers["mlp"][0]).cast("f")
        assert body["predictions"][0]["heads"]["mlp"]["scores"] == dict(zip(labels, row, strict=False))
