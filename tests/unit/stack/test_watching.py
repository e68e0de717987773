"""Alarms, the metric that is read from log lines, and the dashboard."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from coldframe.capacity.prices import PRICES
from coldframe.schemas import CacheUsage, Usage
from coldframe.telemetry.metrics_line import add_metrics
from tests.conftest import ROOT
from tests.support import stacks
from tests.support.stacks import OFFLINE, PROVISIONED, WATCHED, WITH_JOBS, properties, stack

pytestmark = stacks.needs_translator


# https://docs.aws.amazon.com/lambda/latest/dg/monitoring-functions-metrics.html, read 2026-11-21
METRICS = {
    "AWS/Lambda": {
        "Duration",
        "Errors",
        "Invocations",
        "ProvisionedConcurrencySpilloverInvocations",
        "Throttles",
    },
    "AWS/SQS": {"ApproximateNumberOfMessagesVisible"},
    # https://docs.aws.amazon.com/step-functions/latest/dg/procedure-cw-metrics.html, read 2026-11-22
    "AWS/States": {"ExecutionsFailed"},
}
DIMENSIONS: dict[str, dict[str, Any]] = {
    # Of the alias: without Resource, requests of tests to $LATEST would count.
    "AWS/Lambda": {
        "FunctionName": {"Ref": "PredictFunction"},
        "Resource": {"Fn::Sub": "${PredictFunction}:live"},
    },
    "AWS/SQS": {"QueueName": {"Fn::GetAtt": ["FailedEvents", "QueueName"]}},
    "AWS/States": {"StateMachineArn": {"Ref": "OfflineStateMachine"}},
}


def alarms(**parameters: str) -> dict[str, dict[str, Any]]:
    """Those that call somebody, in mode Provisioned and with whole objects: no other stack has more."""
    found = stack(**PROVISIONED, **OFFLINE, **parameters).of_type("AWS::CloudWatch::Alarm")
    return {name: alarm for name, alarm in found.items() if name.startswith("Watching")}


def watched(alarm: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Metrics of an alarm: its one, or those of its expression."""
    if "MetricName" in alarm:
        yield alarm
    for each in alarm.get("Metrics", []):
        if "MetricStat" in each:
            yield each["MetricStat"]["Metric"]


def logged_metrics() -> set[str]:
    """Metrics that the log line of a request can have."""
    usage = Usage(1, 1, 1, 1, 1, 1, 1, CacheUsage(1, 1, 1, 1, 1))
    answers = {"estimator": 1, "ensemble": 1, "abstained": 1, "rushed": 1}
    names: set[str] = set()
    for kind in ("on-demand", "snap-start"):
        for status in (422, 500):
            record: dict[str, object] = {"usage": usage, "answers": answers, "status": status}
            add_metrics(record | {"duration_ms": 1.0}, "Coldframe/test", kind, 0.0)
            add_metrics(record, "Coldframe/test", kind, 0.0)
            names |= record.keys()
    return names


def test_alarms_watch_metrics_that_there_are() -> None:
    """An alarm of a metric or a dimension that CloudWatch does not have would stay silent for ever."""
    [of_reports] = properties(stack(), "WatchingInitDurationMetric")["MetricTransformations"]
    environment = properties(stack(), "PredictFunction")["Environment"]["Variables"]
    namespace = environment["COLDFRAME_METRICS_NAMESPACE"]
    assert of_reports["MetricNamespace"] == namespace
    own = logged_metrics() | {of_reports["MetricName"]}
    for metric in (metric for alarm in alarms().values() for metric in watched(alarm)):
        if metric["Namespace"] in METRICS:
            assert metric["MetricName"] in METRICS[metric["Namespace"]]
            found = {each["Name"]: each["Value"] for each in metric["Dimensions"]}
            assert found == DIMENSIONS[metric["Namespace"]]
        else:
            assert metric["Namespace"] == namespace
            assert metric["MetricName"] in own
            assert "Dimensions" not in metric


def test_expressions_use_their_metrics() -> None:
    """An expression names each metric of its alarm, and no other; CloudWatch refuses the rest."""
    for alarm in alarms().values():
        if "Metrics" not in alarm:
            continue
        [shown, *hidden] = alarm["Metrics"]
        names = set(re.findall(r"\b[a-z]+\b", shown["Expression"]))
        assert names == {each["Id"] for each in hidden}
        assert not any(each["ReturnData"] for each in hidden)


@pytest.mark.parametrize("architecture", PRICES)
def test_cost_has_the_planners_prices(architecture: str) -> None:
    """A day's cost is counted with the prices that the planner has."""
    made = stack(Architecture=architecture, MemorySize="2048")
    cost = properties(made, "WatchingCostAlarm")["Metrics"][0]["Expression"]
    prices = PRICES[architecture]
    duration = f"FILL(duration, 0) / 1000 * 2048 / 1024 * {prices.on_demand_gb_s_usd:.10f}"
    assert cost == f"{duration} + FILL(requests, 0) * {prices.request_usd:.7f}"


@pytest.mark.parametrize("architecture", PRICES)
def test_cost_of_jobs_is_that_of_both_functions(architecture: str) -> None:
    """Durations and invocations of both functions, by the planner's prices, against the same bound."""
    made = stack(**WITH_JOBS, Architecture=architecture, MemorySize="2048", CostAlarmUsd="333")
    alarm = properties(made, "JobsWorkerCostAlarm")
    [cost, *metrics] = alarm["Metrics"]
    prices = PRICES[architecture]
    time = f"FILL(duration, 0) + FILL(control, 0)) / 1000 * 2048 / 1024 * {prices.on_demand_gb_s_usd:.10f}"
    number = f"(FILL(batches, 0) + FILL(calls, 0)) * {prices.request_usd:.7f}"
    assert cost["Expression"] == f"({time} + {number}"
    sources = [one["MetricStat"]["Metric"] for one in metrics]
    seen = {(metric["MetricName"], metric["Dimensions"][0]["Value"]["Ref"]) for metric in sources}
    functions = ("JobsWorkerFunction", "JobsWorkerControlFunction")
    assert seen == {(name, function) for name in ("Duration", "Invocations") for function in functions}
    assert {one["Id"] for one in metrics} == {"duration", "control", "batches", "calls"}
    assert (alarm["Threshold"], alarm["TreatMissingData"]) == ("333", "notBreaching")


def test_jobs_are_watched() -> None:
    """Each queue and function of jobs has an alarm, which tells whoever the other alarms tell."""
    made = stack(**WITH_JOBS, **WATCHED)
    own = {n: a for n, a in made.of_type("AWS::CloudWatch::Alarm").items() if n.startswith("JobsWorker")}
    assert own.pop("JobsWorkerCostAlarm")["AlarmActions"]
    values = [alarm["Dimensions"][0]["Value"] for alarm in own.values()]
    watched = {value["Fn::GetAtt"][0] for value in values if "Fn::GetAtt" in value}
    assert watched == {"JobsWorkerQueue", "JobsWorkerControlQueue", "JobsWorkerFailed"}
    functions = {value["Ref"] for value in values if "Ref" in value}
    assert functions == {"JobsWorkerFunction", "JobsWorkerControlFunction"}
    assert {alarm["TreatMissingData"] for alarm in own.values()} == {"notBreaching"}
    assert all(alarm["AlarmActions"] for alarm in own.values())


def test_alarms_of_jobs_say_what_to_do() -> None:
    """docs/jobs.md has a line for every alarm of jobs, and for none that there is not."""
    table = (ROOT / "docs" / "jobs.md").read_text().partition("## What watches")[2]
    documented = set(re.findall(r"^\| `(\w+Alarm)`", table, re.MULTILINE))
    own = {name for name in stack(**WITH_JOBS).of_type("AWS::CloudWatch::Alarm") if "Jobs" in name}
    assert {name.removeprefix("JobsWorker") for name in own} == documented


def test_alarms_are_silent_without_traffic() -> None:
    """No data is no alarm, and one slow request among few is none either."""
    for alarm in alarms().values():
        assert alarm["TreatMissingData"] == "notBreaching"
        is_percentile = "ExtendedStatistic" in alarm
        assert alarm.get("EvaluateLowSampleCountPercentile") == ("ignore" if is_percentile else None)


def test_alarms_go_off_at_the_first_failure_or_at_the_given_time() -> None:
    """A count that should be 0 is an alarm when it is 1; a duration is one when it is above its parameter."""
    found = alarms(LatencyAlarmMs="111", InitAlarmMs="222", CostAlarmUsd="333")
    thresholds = {"Duration": "111", "InitDuration": "222", "usd": "333", "share": 0.05}
    for alarm in found.values():
        assert alarm["ComparisonOperator"] == "GreaterThanThreshold"
        name = alarm["MetricName"] if "MetricName" in alarm else alarm["Metrics"][0]["Id"]
        assert alarm["Threshold"] == thresholds.get(name, 0)
        # The average of a minute would hide the one failure, or the slow one.
        parts = [each["MetricStat"]["Stat"] for each in alarm.get("Metrics", []) if "MetricStat" in each]
        for statistic in parts or [alarm.get("Statistic", alarm.get("ExtendedStatistic"))]:
            assert statistic in ("Sum", "Maximum", "p99")


def test_alarms_write_to_the_address() -> None:
    """With an address every alarm writes when it goes off and when it is over; without one it only shows."""
    topic = [{"Ref": "WatchingAlarmTopic"}]
    assert all(alarm["AlarmActions"] == alarm["OKActions"] == topic for alarm in alarms(**WATCHED).values())
    assert not any({"AlarmActions", "OKActions"} & set(alarm) for alarm in alarms().values())


def test_alarms_say_what_to_do() -> None:
    """docs/deploy.md has a line for every alarm, and for none that there is not."""
    table = (ROOT / "docs" / "deploy.md").read_text().partition("## What watches")[2]
    documented = set(re.findall(r"^\| `(\w+Alarm)`", table, re.MULTILINE))
    assert {name.removeprefix("Watching") for name in alarms()} == documented


def test_one_page_lists_every_alarm() -> None:
    """docs/observe.md has a row for each alarm of each template, by template and name, and no other row."""
    table = (ROOT / "docs" / "observe.md").read_text().partition("## Alarms on AWS")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| `(\w+)` \|", table, re.MULTILINE)
    alarm = re.compile(r"^  (\w+):\n(?:    .*\n)*?    Type: AWS::CloudWatch::Alarm$", re.MULTILINE)
    templates = (ROOT / "template.yaml", *sorted((ROOT / "functions").glob("*.yaml")))
    made = [(path.name, name) for path in templates for name in alarm.findall(path.read_text())]
    assert len(made) > 15
    assert sorted(rows) == sorted(made)


def test_failure_that_harms_nobody_wakes_nobody() -> None:
    """Nothing watches the shared cache: when it fails, answers are computed instead."""
    assert "CacheTable" not in json.dumps(alarms())


# As they appear in a log; the first two from AWS's documentation of Python functions and of SnapStart:
# https://docs.aws.amazon.com/lambda/latest/dg/python-logging.html,
# https://docs.aws.amazon.com/lambda/latest/dg/snapstart-monitoring.html, read 2026-11-21.
REPORTS = {
    "REPORT RequestId: 8f5\tDuration: 15.74 ms\tBilled Duration: 147 ms\tMemory Size: 128 MB\t"
    "Max Memory Used: 56 MB\tInit Duration: 130.49 ms\t": "130.49",
    "REPORT RequestId: 8f5\tDuration: 115.28 ms\tBilled Duration: 1 ms\tMemory Size: 1769 MB\t"
    "Max Memory Used: 202 MB\tRestore Duration: 500.77 ms\tBilled Restore Duration: 3 ms\t": "500.77",
    "REPORT RequestId: 8f5\tDuration: 15.74 ms\tBilled Duration: 16 ms\tMemory Size: 128 MB\t"
    "Max Memory Used: 56 MB\t": None,
    '{"requestId": "8f5", "status": 200, "start": "cold"}': None,
}


def filtered(pattern: str, line: str) -> str | None:
    """What a space-delimited filter pattern of CloudWatch Logs takes out of a line as `init_ms`.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html, read 2026-11-21
    """
    fields = [field.strip() for field in pattern.strip("[]").split(",")]
    assert fields.pop() == "..."
    words = line.split()
    if len(words) < len(fields):
        return None
    value = None
    for field, word in zip(fields, words, strict=False):
        name, *_ = field.split("=")
        wanted = re.findall(r'="([^"]*)"', field)
        if wanted and word not in wanted:
            return None
        value = word if name == "init_ms" else value
    return value


@pytest.mark.parametrize("line", REPORTS)
def test_init_duration_is_read_from_reports(line: str) -> None:
    """The metric is the duration of an init, or of a restore, of each REPORT line that has one."""
    made = properties(stack(), "WatchingInitDurationMetric")
    assert filtered(made["FilterPattern"], line) == REPORTS[line]
    assert made["LogGroupName"] == {"Ref": "PredictLogGroup"}
    [metric] = made["MetricTransformations"]
    alarm = properties(stack(), "WatchingInitAlarm")
    assert (metric["MetricNamespace"], metric["MetricName"]) == (alarm["Namespace"], alarm["MetricName"])
    assert metric["MetricValue"] == "$init_ms"


def test_dashboard_shows_this_stack() -> None:
    """The dashboard is JSON, and whatever it shows is a resource of this stack, in the stack's region."""
    body = properties(stack(), "WatchingDashboard")["DashboardBody"]["Fn::Sub"]
    widgets = json.loads(body)["widgets"]
    assert all(widget["properties"]["region"] == "us-east-1" for widget in widgets)
    named = set(re.findall(r"\$\{([\w.]+)\}", body))
    assert {name.partition(".")[0] for name in named} <= set(stack().resources)
