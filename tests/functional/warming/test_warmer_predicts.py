"""The warmer with prediction, on a real table and metrics, with real environments and boto3."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError

from coldframe.capacity.prices import PRICES
from coldframe.warming import dynamodb_record
from coldframe.warming.decision import Guards
from coldframe.warming.policy import HoldCosts
from coldframe.warming.record import Record
from coldframe.warming.round import Clients, run_round
from coldframe.warming.settings import Predicting, predicting
from coldframe_bench.targets.faulty_server import FaultyServer
from coldframe_functions.warmer import app as warmer
from tests.functional.conftest import TABLE
from tests.support.lambda_endpoint import VERSION, LambdaEndpoint, lambda_endpoint

pytestmark = pytest.mark.waits

NOW = datetime(2026, 11, 22, 12, 2, tzinfo=UTC)
SLOT = timedelta(minutes=5)
SETTINGS = Predicting(
    "predict", "live", TABLE, Guards(most=5, day_usd=1.0), HoldCosts(7e-6, 1e-3), HoldCosts(1e-4, 1e-3)
)


class NoConfig(Exception):
    """Lambda's error for an alias without provisioned concurrency."""


class World:
    """boto3's clients, pings that are only written down, and a level that scheduled actions set.

    level: provisioned concurrency. next_fault: the number of the call that fails, and whether it fails after
    its effect; None: none fails.
    """

    exceptions = SimpleNamespace(ProvisionedConcurrencyConfigNotFoundException=NoConfig)

    def __init__(self, moto: str) -> None:
        self.cloudwatch = boto3.client("cloudwatch", endpoint_url=moto)
        self.dynamodb = boto3.client("dynamodb", endpoint_url=moto)
        self.scaling = boto3.client("application-autoscaling", endpoint_url=moto)
        self.pinged: list[tuple[str, int]] = []
        self.calls: list[str] = []
        self.level = 0
        self.next_fault: tuple[int, bool] | None = None
        self._made = 0
        for client in (self.cloudwatch, self.dynamodb, self.scaling):
            client.meta.events.register("before-call", self._before)
            client.meta.events.register("after-call", self._after)

    def _before(self, model: Any, **_: Any) -> None:
        self.calls.append(model.name)
        self._made += 1
        self._fail(after=False)

    def _after(self, **_: Any) -> None:
        self._fail(after=True)

    def _fail(self, after: bool) -> None:
        if self.next_fault == (self._made, after):
            raise EndpointConnectionError(endpoint_url="https://aws.example")

    @contextmanager
    def _call(self) -> Iterator[None]:
        self._made += 1
        self._fail(after=False)
        yield
        self._fail(after=True)

    def expect_fault(self, number: int, after: bool) -> None:
        """From now on the call of this number fails, from 1."""
        self._made, self.next_fault = 0, (number, after)

    def get_alias(self, **_: str) -> dict[str, str]:
        with self._call():
            return {"FunctionVersion": "7"}

    def get_provisioned_concurrency_config(self, **_: str) -> dict[str, Any]:
        with self._call():
            if not self.level:
                raise NoConfig
            return {"RequestedProvisionedConcurrentExecutions": self.level}

    def delete_provisioned_concurrency_config(self, **_: str) -> None:
        with self._call():
            self.level = 0

    def ping(self, version: str, count: int) -> dict[str, Any]:
        with self._call():
            self.pinged.append((version, count))
            return {"environments": count, "cold": 0, "throttled": 0}

    def pass_minute(self, function: str) -> None:
        """Has Application Auto Scaling do what is scheduled."""
        self.next_fault = None
        for action in self.scaling.describe_scheduled_actions(**target_of(function))["ScheduledActions"]:
            self.level = action["ScalableTargetAction"]["MaxCapacity"]
            self.scaling.delete_scheduled_action(
                **target_of(function), ScheduledActionName=action["ScheduledActionName"]
            )

    @property
    def clients(self) -> Clients:
        return Clients(self, self.cloudwatch, self.dynamodb, lambda: self.scaling, self.ping)

    def busy(self, function: str, count: int, at: datetime) -> None:
        self.cloudwatch.put_metric_data(
            Namespace="AWS/Lambda",
            MetricData=[
                {
                    "MetricName": "ConcurrentExecutions",
                    "Dimensions": [
                        {"Name": "FunctionName", "Value": function},
                        {"Name": "Resource", "Value": f"{function}:live"},
                    ],
                    "Timestamp": at,
                    "Value": count,
                }
            ],
        )

    def close(self) -> None:
        for client in (self.cloudwatch, self.dynamodb, self.scaling):
            client.close()


def target_of(function: str) -> dict[str, str]:
    """The scalable target of a function's alias."""
    return {
        "ServiceNamespace": "lambda",
        "ResourceId": f"function:{function}:live",
        "ScalableDimension": "lambda:function:ProvisionedConcurrency",
    }


@pytest.fixture
def world(moto: str, store: FaultyServer) -> Iterator[World]:
    opened = World(moto)
    yield opened
    opened.close()


def timer(world: World, function: str) -> Predicting:
    """Three requests at once every half hour of the last day; the next time is the slot of `NOW`."""
    for back in range(6, 288, 6):
        world.busy(function, 3, NOW - back * SLOT)
    return replace(SETTINGS, function=function)


def test_a_round_learns_pings_and_remembers(world: World) -> None:
    """One call of CloudWatch: the timer's three environments are pinged, and the record has it."""
    settings = timer(world, "half-hourly")
    line = run_round(world.clients, settings, NOW)
    assert world.calls[-3:] == ["GetItem", "GetMetricData", "PutItem"]
    assert world.calls.count("GetMetricData") == 1
    assert world.pinged == [("half-hourly:7", 3)]
    assert (line["pings"], line["reason"], line["state"]) == (3, "expected", "new: there was none")
    json.dumps(line)
    record, state = dynamodb_record.read(world.dynamodb, TABLE, "half-hourly")
    assert (state, record.revision) == ("kept", 1)
    assert record.peaks[-6:] == (3, 0, 0, 0, 0, 0)
    assert record.spent_on("2026-11-22") == pytest.approx(3 * 7e-6)


def test_the_next_round_reads_what_is_new(world: World) -> None:
    """It asks for the last slots only, and what was pinged just now needs no ping."""
    settings = timer(world, "again")
    run_round(world.clients, settings, NOW)
    line = run_round(world.clients, settings, NOW + SLOT)
    assert (line["state"], line["pings"], line["skipped"]) == ("kept", 0, True)
    record, _ = dynamodb_record.read(world.dynamodb, TABLE, "again")
    assert record.pinged[-1] == 3
    assert len(record.peaks) == 276 + 6 + 1 or record.peaks[-7] == 3


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"form": {"N": "2"}, "revision": {"N": "5"}}, "its form is 2, expected 1"),
        ({"form": {"N": "1"}, "revision": {"N": "5"}, "pings": {"S": "x"}}, "in place of bytes"),
        ({"form": {"N": "1"}, "revision": {"S": "many"}}, "cannot be read"),
        ({}, "its form is None"),
    ],
)
def test_a_record_that_cannot_be_read_is_begun_anew(world: World, item: dict[str, Any], reason: str) -> None:
    """Of a version to come, or damaged: the round says so, works all the same, and mends it."""
    settings = timer(world, f"damaged {reason}")
    key = {"cache_key": {"S": f"warmer#{settings.function}"}}
    world.dynamodb.put_item(TableName=TABLE, Item=key | item)
    line = run_round(world.clients, settings, NOW)
    assert line["state"].startswith("new: ")
    assert reason in line["state"]
    assert line["pings"] == 3
    assert dynamodb_record.read(world.dynamodb, TABLE, settings.function)[1] == "kept"


def test_a_clock_that_was_wrong_is_forgotten(world: World) -> None:
    """A record of the future begins anew."""
    settings = timer(world, "future")
    ahead = Record(end=int(NOW.timestamp()) // 300 + 999, peaks=(1,))
    dynamodb_record.write(world.dynamodb, TABLE, "future", ahead, 0)
    line = run_round(world.clients, settings, NOW)
    assert (line["state"], line["pings"]) == ("new: its slots are in the future", 3)


def test_of_two_warmers_at_once_one_pings(world: World) -> None:
    """Who reads before the other writes does nothing, and says so; the record has one round's money."""
    settings = timer(world, "twice")
    read_by_both = threading.Barrier(2)
    read = dynamodb_record.read
    lines: list[dict[str, Any]] = []

    def waits(*args: Any) -> tuple[Record, str]:
        found = read(*args)
        read_by_both.wait(30)
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dynamodb_record, "read", waits)
        threads = [
            threading.Thread(target=lambda: lines.append(run_round(world.clients, settings, NOW)))
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(line["pings"] for line in lines) == [0, 3]
    reasons = [line["reason"] for line in lines if not line["pings"]]
    assert reasons == ["another warmer has written the record"]
    assert len(world.pinged) == 1
    assert read(world.dynamodb, TABLE, "twice")[0].spent_usd == pytest.approx(3 * 7e-6)


def test_a_guarantee_is_a_scheduled_action(world: World) -> None:
    """Provisioned concurrency follows the level that is likely, and goes to zero."""
    settings = guaranteed(world, "promised")
    target = target_of("promised")
    line = run_round(world.clients, settings, NOW)
    assert (line["provisioned"], line["pings"]) == (2, 3)
    [action] = world.scaling.describe_scheduled_actions(**target)["ScheduledActions"]
    assert action["ScalableTargetAction"] == {"MinCapacity": 2, "MaxCapacity": 2}
    assert action["Schedule"] == "at(2026-11-22T12:03:00)"
    world.pass_minute("promised")
    assert world.level == 2
    assert run_round(world.clients, settings, NOW + SLOT)["provisioned"] == 0
    [action] = world.scaling.describe_scheduled_actions(**target)["ScheduledActions"]
    assert action["ScalableTargetAction"] == {"MinCapacity": 0, "MaxCapacity": 0}


def guaranteed(world: World, function: str) -> Predicting:
    """The timer, whose level of the slot of `NOW` may be provisioned up to 2."""
    world.scaling.register_scalable_target(**target_of(function), MinCapacity=0, MaxCapacity=2)
    return replace(timer(world, function), guards=Guards(most=5, day_usd=1.0, guaranteed=2))


CALLS = ["GetItem", "GetMetricData", "GetProvisionedConcurrencyConfig", "PutItem", "PutScheduledAction"]


@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after its effect"])
@pytest.mark.parametrize("number", range(1, len(CALLS) + 1), ids=CALLS)
def test_a_failed_call_is_repaired_by_the_next_round(world: World, number: int, after: bool) -> None:
    """Whichever call of a round fails, the next round ends provisioned concurrency that nobody needs."""
    function = f"faulty-{number}-{after}"
    settings = guaranteed(world, function)
    run_round(world.clients, settings, NOW)
    world.pass_minute(function)
    assert world.level == 2
    world.expect_fault(number, after)
    with pytest.raises(EndpointConnectionError):
        run_round(world.clients, settings, NOW + SLOT)
    world.pass_minute(function)
    line = run_round(world.clients, settings, NOW + 2 * SLOT)
    world.pass_minute(function)
    assert (line["provisioned"], world.level) == (0, 0)


def test_a_level_beyond_the_decision_is_paid_for(world: World) -> None:
    """Provisioned concurrency that AWS holds counts towards the day's money, whatever was decided."""
    settings = guaranteed(world, "beyond")
    world.level = 6
    line = run_round(world.clients, settings, NOW + SLOT)
    assert line["provisioned"] == 0
    spent = dynamodb_record.read(world.dynamodb, TABLE, "beyond")[0].spent_usd
    assert spent == pytest.approx(line["usd"] + 6 * settings.provision.idle_usd)


@pytest.mark.parametrize("rounds", [1, 2], ids=["while it rises", "while it falls"])
def test_a_guarantee_that_is_switched_off_is_released(world: World, rounds: int) -> None:
    """Without `WarmGuaranteed` nothing of the warmer's stays provisioned, although its target is gone."""
    function = f"released-{rounds}"
    settings = guaranteed(world, function)
    for number in range(rounds):
        run_round(world.clients, settings, NOW + number * SLOT)
        world.level = 2  # a scheduled action that lowers it is deleted with its target
    off = replace(settings, guards=replace(settings.guards, guaranteed=0))
    run_round(world.clients, off, NOW + 3 * SLOT)
    assert world.level == 0
    run_round(world.clients, off, NOW + 4 * SLOT)
    world.level = 3  # set by hand
    run_round(world.clients, off, NOW + 5 * SLOT)
    assert world.level == 3


def test_a_level_of_somebody_else_is_left_alone(world: World) -> None:
    """A warmer that has never provisioned asks AWS for no level, ends none, and does not pay for it."""
    settings = timer(world, "by-hand")
    world.level = 6
    line = run_round(world.clients, settings, NOW)
    assert world.level == 6
    spent = dynamodb_record.read(world.dynamodb, TABLE, "by-hand")[0].spent_usd
    assert spent == pytest.approx(line["usd"])


def test_off_is_the_fixed_rate() -> None:
    """Without the word `on` nothing of it is read."""
    assert predicting({"PREDICTION": "off"}, PRICES) is None
    assert predicting({}, PRICES) is None


def test_warmer_as_lambda_calls_it(
    bundle: Path,
    world: World,
    moto: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The handler finds its settings in the environment, pings real environments, and logs its reason."""
    with lambda_endpoint(bundle) as endpoint:
        report = round_of_handler(endpoint, moto, monkeypatch)
        assert (report["environments"], report["cold"], report["version"]) == (1, 1, VERSION)
        assert report["reason"] == "the minimum is 1"
        line = json.loads(capsys.readouterr().out)
        assert line.items() > json.loads(json.dumps(report)).items()
        assert line["time"].endswith("Z") and line["duration_ms"] >= 0
        assert endpoint.environments() == 1


def round_of_handler(endpoint: LambdaEndpoint, moto: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """One invocation with the variables of the template."""
    for name, value in {
        "AWS_ENDPOINT_URL_LAMBDA": endpoint.url,
        "AWS_ENDPOINT_URL_CLOUDWATCH": moto,
        "AWS_ENDPOINT_URL_DYNAMODB": moto,
        "FUNCTION_NAME": "called",
        "ALIAS": "live",
        "WARM_ENVIRONMENTS": "0",
        "PREDICTION": "on",
        "WARM_MINIMUM": "1",
        "WARM_MAXIMUM": "4",
        "WARM_USD_PER_DAY": "0.05",
        "COLD_START_USD": "0.001",
        "WARM_GUARANTEED": "0",
        "MEMORY_MB": "1769",
        "ARCHITECTURE": "arm64",
        "TABLE": TABLE,
    }.items():
        monkeypatch.setenv(name, value)
    warmer._clients.cache_clear()
    warmer._all_clients.cache_clear()
    report = warmer.handler({}, None)
    clients = warmer._all_clients(4)
    for client in (clients.lambda_, clients.cloudwatch, clients.dynamodb):
        client.close()
    warmer._clients.cache_clear()
    warmer._all_clients.cache_clear()
    return report
