"""The warmer in the emulator: its metrics, its table, its pings and its scheduled actions, by boto3 alone."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.options import EmulatorOptions
from coldframe_local.emulator.template.template import load_template
from tests.conftest import ROOT

pytestmark = pytest.mark.anyio

CODE = """
import time, uuid
ENVIRONMENT, cold = str(uuid.uuid4()), True
def handler(event, context):
    global cold
    time.sleep(event.get("hold_ms", 0) / 1000)
    start, cold = ("cold" if cold else "warm"), False
    return {"environment": ENVIRONMENT, "start": start}
"""
TEMPLATE = """
Transform: AWS::Serverless-2016-10-31
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{{AttributeName: cache_key, AttributeType: S}}]
      KeySchema: [{{AttributeName: cache_key, KeyType: HASH}}]
  Predict:
    Type: AWS::Serverless::Function
    Properties:
      {{FunctionName: predict, CodeUri: ., Handler: predict.handler, Runtime: python3.13, MemorySize: 256,
       AutoPublishAlias: live}}
  Warmer:
    Type: AWS::Serverless::Function
    Properties:
      FunctionName: warmer
      CodeUri: {warmer}
      Handler: app.handler
      Runtime: python3.13
      MemorySize: 512
      Timeout: 60
      Environment:
        Variables:
          {{FUNCTION_NAME: predict, ALIAS: live, WARM_ENVIRONMENTS: "{fixed}", PREDICTION: "{prediction}",
           WARM_MINIMUM: "2", WARM_MAXIMUM: "4", WARM_USD_PER_DAY: "1", COLD_START_USD: "0.001",
           WARM_GUARANTEED: "{guaranteed}", MEMORY_MB: "256", ARCHITECTURE: arm64, TABLE: !Ref Table}}
"""


class Running:
    """An emulator, and boto3's clients of it in a thread."""

    def __init__(self, emulator: Emulator, log: list[str], passed: list[float]) -> None:
        self.emulator, self.log, self.passed = emulator, log, passed
        common: dict[str, Any] = {
            "region_name": "us-east-1", "aws_access_key_id": "a", "aws_secret_access_key": "b"
        }  # fmt: skip
        url = emulator.url
        self.lambda_ = boto3.client("lambda", endpoint_url=url, **common)
        self.cloudwatch = boto3.client("cloudwatch", endpoint_url=f"{url}/_aws/cloudwatch", **common)
        scaling = f"{url}/_aws/application-autoscaling"
        self.scaling = boto3.client("application-autoscaling", endpoint_url=scaling, **common)

    async def invoke(self, name: str, event: dict[str, Any]) -> Any:
        def call() -> Any:
            response = self.lambda_.invoke(FunctionName=name, Payload=json.dumps(event))
            return json.loads(response["Payload"].read()), response.get("FunctionError")

        result, error = await asyncio.to_thread(call)
        assert error is None, (result, self.log)
        return result

    async def at_once(self, count: int) -> None:
        await asyncio.gather(*(self.invoke("predict:live", {"hold_ms": 700}) for _ in range(count)))

    def close(self) -> None:
        for client in (self.lambda_, self.cloudwatch, self.scaling):
            client.close()


async def running(tmp_path: Path, prediction: str, guaranteed: int = 0) -> AsyncIterator[Running]:
    (tmp_path / "predict.py").write_text(CODE)
    values = {
        "warmer": ROOT / "functions" / "coldframe_functions" / "warmer",
        "prediction": prediction,
        "guaranteed": guaranteed,
    }
    values["fixed"] = "0" if prediction == "on" else "2"
    (tmp_path / "t.yaml").write_text(TEMPLATE.format(**values))
    log: list[str] = []
    passed = [0.0]  # requests may be made in the past; naps end at once
    options = EmulatorOptions(load_template(tmp_path / "t.yaml"), port=0, log=log.append)
    async with Emulator(options, now=lambda: time.time() - passed[0], nap=asyncio.sleep) as emulator:
        opened = Running(emulator, log, passed)
        yield opened
        opened.close()


@pytest.fixture
async def predicting(tmp_path: Path) -> AsyncIterator[Running]:
    async for opened in running(tmp_path, "on"):
        yield opened


@pytest.fixture
async def fixed(tmp_path: Path) -> AsyncIterator[Running]:
    async for opened in running(tmp_path, "off"):
        yield opened


def query(qualifier: str | None, statistic: str = "Maximum", name: str = "ConcurrentExecutions") -> Any:
    dimensions = [{"Name": "FunctionName", "Value": "predict"}]
    if qualifier:
        dimensions.append({"Name": "Resource", "Value": f"predict:{qualifier}"})
    metric = {"Namespace": "AWS/Lambda", "MetricName": name, "Dimensions": dimensions}
    return {"Id": "asked", "MetricStat": {"Metric": metric, "Period": 300, "Stat": statistic}}


async def data(opened: Running, *queries: Any) -> list[list[float]]:
    now = datetime.now(UTC)
    found = await asyncio.to_thread(
        opened.cloudwatch.get_metric_data,
        StartTime=now - timedelta(hours=1),
        EndTime=now + timedelta(minutes=1),
        MetricDataQueries=list(queries),
    )
    return [result["Values"] for result in found["MetricDataResults"]]


async def test_metrics_are_those_of_the_alias(predicting: Running) -> None:
    """boto3 reads how many were busy at once, and how many were invoked, by alias and altogether."""
    predicting.passed[0] = 1200.0
    await predicting.at_once(3)
    await predicting.invoke("predict", {})
    assert await data(predicting, query("live"), query("live", "Sum", "Invocations")) == [[3], [3]]
    assert await data(predicting, query(None, "Sum", "Invocations"), query("other")) == [[4], []]


async def test_what_is_not_counted_is_refused(predicting: Running) -> None:
    """Another metric or statistic is an error that says what there is."""
    for wrong, text in (
        (query("live", "p99"), "Sum and Maximum"),
        (query("live", name="Duration"), "ConcurrentExecutions here, and not Duration"),
    ):
        with pytest.raises(ClientError, match=text):
            await data(predicting, wrong)


async def test_the_warmer_predicts_from_what_the_emulator_counted(predicting: Running) -> None:
    """It reads the peak, keeps its record in the table, pings real environments, and says why."""
    predicting.passed[0] = 1200.0
    await predicting.at_once(3)
    first = await predicting.invoke("warmer", {})
    assert (first["prediction"], first["state"]) == ("on", "new: there was none")
    assert first["reason"] in ("expected", "the minimum is 2")
    assert first["environments"] == first["pings"] >= 2
    assert [level for level, _ in first["probabilities"]] == [1, 2, 3]
    second = await predicting.invoke("warmer", {})
    assert second["state"] == "kept"
    assert second["spent_usd"] == pytest.approx(first["usd"], abs=1e-9)
    assert any('"prediction": "on"' in line for line in predicting.log)


async def test_off_is_the_fixed_rate(fixed: Running) -> None:
    """Today's warmer works in the emulator, too: it asks for statistics, and pings as many as it is told."""
    line = await fixed.invoke("warmer", {})
    assert (line["wanted"], line["skipped"], line["environments"]) == (2, False, 2)
    await fixed.at_once(2)
    assert (await fixed.invoke("warmer", {}))["skipped"] is True


async def test_scheduled_actions_provision_down_to_zero(predicting: Running) -> None:
    """An action of a moment that has come sets what is provisioned for the alias."""
    for count in (1, 0):
        await asyncio.to_thread(
            predicting.scaling.put_scheduled_action,
            ServiceNamespace="lambda",
            ScheduledActionName="warmer",
            ResourceId="function:predict:live",
            ScalableDimension="lambda:function:ProvisionedConcurrency",
            Schedule=f"at({datetime.now(UTC) - timedelta(seconds=1):%Y-%m-%dT%H:%M:%S})",
            ScalableTargetAction={"MinCapacity": count, "MaxCapacity": count},
        )
        wanted = f"Application Auto Scaling provisions {count} of predict:live."
        revision = 0
        while wanted not in predicting.log:
            revision = await predicting.emulator.service.changed(revision)
        provisioned = predicting.emulator.service.concurrency.list_provisioned("predict")
        assert sum(config.requested for config in provisioned) == count


async def test_scheduled_actions_that_are_not_understood_are_refused(predicting: Running) -> None:
    """A cron expression, and an alias that is not there."""
    common = {
        "ServiceNamespace": "lambda",
        "ScheduledActionName": "warmer",
        "ScalableDimension": "lambda:function:ProvisionedConcurrency",
        "ScalableTargetAction": {"MinCapacity": 1, "MaxCapacity": 1},
    }
    for resource, schedule in (("live", "cron(0 8 * * ? *)"), ("other", "at(2026-11-22T12:00:00)")):
        with pytest.raises(ClientError):
            await asyncio.to_thread(
                predicting.scaling.put_scheduled_action,
                ResourceId=f"function:predict:{resource}",
                Schedule=schedule,
                **common,
            )
