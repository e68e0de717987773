"""Labels of an experiment through the emulated function: its answers, its feedback and its table."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from coldframe.cache.aws_clients import AwsClients
from coldframe.experiments.control import Control
from coldframe.experiments.document import read_experiment
from coldframe.experiments.report import Report, present_report
from coldframe.experiments.table import TableStore
from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.options import EmulatorOptions
from coldframe_local.emulator.template.template import load_template
from tests.conftest import ROOT

pytestmark = [pytest.mark.anyio, pytest.mark.waits]

_SPLIT = (
    b'{"name": "heads", "kind": "split", "stages": [0.5, 1.0], "counts": "answer",'
    b' "arms": [{"name": "now"}, {"name": "next", "head": "mlp"}]}'
)
_PARAMETERS = {
    "Experiments": "on",
    "CachePolicy": "off",
    "FeedbackKey": "0123456789abcdef",
    "FeedbackSample": "1",
}
_TEXTS = 16


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> Control:
    """Commands about the function's experiment."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return Control(TableStore("coldframe-ExperimentTable", AwsClients(10.0)))


async def test_labels_of_one_arm_decide_nothing(control: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where feedback comes for the second arm alone, `status` says so, and its share stays as it is."""
    options = EmulatorOptions(
        load_template(ROOT / "template.yaml", _PARAMETERS),
        port=0,
        environ={"COLDFRAME_CACHE_DEADLINE_MS": "10000"},
        max_environments=1,
        log=lambda line: None,
    )
    async with Emulator(options) as emulator:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", str(emulator.stores.url))
        await asyncio.to_thread(control.start, read_experiment(_SPLIT))
        async with httpx.AsyncClient(base_url=emulator.url, timeout=120, trust_env=False) as client:
            await _label_second_arm(client)
        report = await asyncio.to_thread(present_report, control)
    assert isinstance(report, Report)
    now, following = report.arms
    assert now.answers > 0 and (now.labelled, following.labelled) == (0, _TEXTS)
    assert report.sentence == (
        "It is not yet known which arm is better: the candidate has 100 % of the labels instead of 50 %,"
        " so accuracy is not judged until labels are sent for the drawn answers of both arms."
    )
    assert (report.state, report.stage) == ("running", 0)


async def _label_second_arm(client: httpx.AsyncClient) -> None:
    """Sends texts until the second arm has given enough answers, and calls each of these right."""
    labelled = number = 0
    while labelled < _TEXTS:
        number += 1
        answer: Any = (await client.post("/v1/predict", json={"text": f"Engine number {number}"})).json()
        if answer.get("experiment", {}).get("arm") == "next":
            head = answer["predictions"][0]["heads"]["mlp"]
            label = head["label"] or head["top"][0]["label"]
            sent = {"feedback": [{"id": head["id"], "label": label}]}
            reply = await client.post("/v1/feedback", json=sent)
            assert reply.json()["results"] == [{"outcome": "stored"}], reply.text
            labelled += 1
