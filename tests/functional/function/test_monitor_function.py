"""The monitor function in the emulator: it reads log lines, keeps hours in a table, and prints metrics."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from coldframe.model.files import model_folder
from coldframe.monitoring.drift import WEEK_S
from coldframe.monitoring.recorder import Answer, count_answer
from coldframe.monitoring.reference import Reference, make_reference, write_reference
from coldframe.monitoring.sketch import Sketch, empty_counts
from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.options import EmulatorOptions
from coldframe_local.emulator.template.syntax.documents import read_document
from coldframe_local.emulator.template.template import load_template
from tests.conftest import ROOT

pytestmark = pytest.mark.anyio

LABELS = ["a", "b", "c"]
CODE = """
def handler(event, context):
    for line in event["lines"]:
        print(line)
"""
TEMPLATE = """
Transform: AWS::Serverless-2016-10-31
Resources:
  Hours:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions:
        - {{AttributeName: log_group, AttributeType: S}}
        - {{AttributeName: hour, AttributeType: N}}
      KeySchema:
        - {{AttributeName: log_group, KeyType: HASH}}
        - {{AttributeName: hour, KeyType: RANGE}}
  Group: {{Type: AWS::Logs::LogGroup, Properties: {{LogGroupName: lines}}}}
  Predict:
    Type: AWS::Serverless::Function
    Properties:
      {{FunctionName: predict, CodeUri: ., Handler: predict.handler, Runtime: python3.13,
       MemorySize: 256, LoggingConfig: {{LogGroup: !Ref Group}}}}
  Monitor:
    Type: AWS::Serverless::Function
    Properties:
      FunctionName: monitor
      CodeUri: {functions}
      Handler: app.handler
      Runtime: python3.13
      MemorySize: 1024
      Timeout: 120
      Environment:
        Variables:
          {{COLDFRAME_MODEL_DIR: {models}, LOG_GROUP: !Ref Group, HOURS_TABLE: !Ref Hours,
           FEEDBACK_TABLE: "", METRICS_NAMESPACE: Coldframe/mine, SLOT: hour}}
"""


class Running:
    """An emulator, and boto3's clients of it in a thread. passed: seconds that its clock is ahead."""

    def __init__(self, emulator: Emulator, log: list[str]) -> None:
        self.emulator, self.log = emulator, log
        common: dict[str, Any] = {
            "region_name": "us-east-1", "aws_access_key_id": "a", "aws_secret_access_key": "b"
        }  # fmt: skip
        self.lambda_ = boto3.client("lambda", endpoint_url=emulator.url, **common)
        self.logs = boto3.client("logs", endpoint_url=f"{emulator.url}/_aws/logs", **common)

    async def invoke(self, name: str, event: dict[str, Any]) -> Any:
        def call() -> Any:
            response = self.lambda_.invoke(FunctionName=name, Payload=json.dumps(event))
            return json.loads(response["Payload"].read()), response.get("FunctionError")

        result, error = await asyncio.to_thread(call)
        assert error is None, (result, self.log)
        return result

    async def lines(self, **arguments: Any) -> list[str]:
        """Messages of the group `lines`, of all pages."""

        def call() -> list[str]:
            pages = self.logs.get_paginator("filter_log_events").paginate(logGroupName="lines", **arguments)
            return [event["message"] for page in pages for event in page["events"]]

        return await asyncio.to_thread(call)

    def metrics(self) -> list[dict[str, Any]]:
        """Lines of metrics that the monitor printed."""
        return [json.loads(line) for line in self.log if '"_aws"' in line]


def answers(dice: random.Random, number: int, probability: float) -> list[Answer]:
    return [
        Answer(dice.randrange(3), probability, 20 + dice.randrange(50), 0, dice.random())
        for _ in range(number)
    ]


def line_of(sequence: int, probability: float) -> str:
    """The line of a sketch of 400 texts that ends now."""
    counts, now_s = empty_counts(3), time.time()
    for answer in answers(random.Random(sequence), 400, probability):
        count_answer(counts, answer, 3, None)
    sketch = Sketch("sha256:m", "auto", "e", sequence, now_s - 1, now_s, counts)
    return json.dumps({"event": "sketch", "sketch": sketch.as_json()})


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    (tmp_path / "predict.py").write_text(CODE)
    folder = model_folder(tmp_path / "models", "mine")
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    rows = answers(random.Random(1), 500, 0.9)
    made = make_reference("auto", LABELS, "sha256:encoder", 384, [(row, row.label) for row in rows])
    write_reference(Reference("sha256:m", made.head, made.labels, made.counts, made.rows), folder)
    values = {
        "functions": ROOT / "functions" / "coldframe_functions" / "monitor",
        "models": tmp_path / "models",
    }
    (tmp_path / "t.yaml").write_text(TEMPLATE.format(**values))
    log: list[str] = []
    options = EmulatorOptions(load_template(tmp_path / "t.yaml"), port=0, log=log.append)
    async with Emulator(options, nap=asyncio.sleep) as emulator:
        opened = Running(emulator, log)
        yield opened
        opened.lambda_.close()
        opened.logs.close()


def goes_off(alarm: dict[str, Any], metrics: dict[str, Any]) -> bool:
    """Whether CloudWatch's alarm of the template goes off for a line of metrics."""
    [directive] = metrics["_aws"]["CloudWatchMetrics"]
    names = {metric["Name"] for metric in directive["Metrics"]}
    assert "Dimensions" not in alarm
    assert [] in directive["Dimensions"]
    assert (alarm["Namespace"], alarm["ComparisonOperator"]) == (
        {"Ref": "MetricsNamespace"},
        "GreaterThanThreshold",
    )
    return alarm["MetricName"] in names and metrics[alarm["MetricName"]] > alarm["Threshold"]


async def test_the_alarm_goes_off_for_shifted_texts(running: Running) -> None:
    """Texts like the training's raise no alarm; other texts do, in a later round."""
    resources = read_document(ROOT / "functions" / "monitor.yaml")["Resources"]
    alarm = resources["DriftAlarm"]["Properties"]
    assert (await running.invoke("monitor", {}))["texts"] == 0
    assert running.metrics() == []
    await running.invoke("predict", {"lines": ["text", line_of(1, 0.9), line_of(2, 0.9)]})
    quiet = await running.invoke("monitor", {})
    assert (quiet["texts"], quiet["drifted"]) == (800, [])
    await running.invoke("predict", {"lines": [line_of(number, 0.4) for number in range(3, 6)]})
    shifted = await running.invoke("monitor", {})
    assert (shifted["texts"], shifted["drifted"], shifted["hours_left"]) == (2000, ["sha256:m"], 0)
    # In the first minutes of an hour the hour before is open, too.
    assert shifted["hours_read"] <= 2
    before, after = running.metrics()
    assert (goes_off(alarm, before), goes_off(alarm, after)) == (False, True)
    assert before["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Coldframe/mine"


async def test_the_risk_alarm_is_about_the_proven_part() -> None:
    """The alarm compares the lower end of the interval, which few labels leave at 0."""
    alarm = read_document(ROOT / "functions" / "monitor.yaml")["Resources"]["RiskAlarm"]["Properties"]
    assert (alarm["MetricName"], alarm["Threshold"]) == ("lowest_risk", {"Ref": "RiskBound"})


async def test_lines_are_read_as_from_cloudwatch_logs(running: Running) -> None:
    """boto3 reads pages of lines by moment and by one field; other groups and patterns are errors."""
    lines = [json.dumps({"event": "sketch", "n": number}) for number in range(5)]
    await running.invoke("predict", {"lines": [*lines, "text", '{"event": "other"}', "{", "[]"]})
    pattern = '{ $.event = "sketch" }'
    assert await running.lines(filterPattern=pattern, PaginationConfig={"PageSize": 2}) == lines
    assert set(lines) < set(await running.lines())
    assert await running.lines(endTime=int((time.time() - WEEK_S) * 1000)) == []
    with pytest.raises(ClientError, match="InvalidParameterException"):
        await running.lines(filterPattern="?ERROR")
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        await asyncio.to_thread(running.logs.filter_log_events, logGroupName="missing")
