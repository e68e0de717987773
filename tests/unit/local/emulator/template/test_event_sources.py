"""Schedules and queues that call functions of a template."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from coldframe_local.emulator.template.syntax.errors import TemplateError
from coldframe_local.emulator.template.syntax.template_warnings import lines
from coldframe_local.emulator.template.template import Template, load_template

Load = Callable[[str], Template]
FUNCTION = "CodeUri: ., Handler: a.b, Runtime: python3.13"


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads a template of resources that are given as text."""
    (tmp_path / "a.py").write_text("")

    def loaded(resources: str) -> Template:
        (tmp_path / "t.yaml").write_text(f"Resources:\n{resources}")
        return load_template(tmp_path / "t.yaml")

    return loaded


def function(events: str, more: str = "") -> str:
    return f"""
  F:
    Type: AWS::Serverless::Function
    Properties: {{{FUNCTION}, {more} Events: {events}}}
  Q: {{Type: AWS::SQS::Queue, Properties: {{VisibilityTimeout: 90}}}}
"""


def test_schedules(load: Load) -> None:
    """Events of a function, rules and schedules of their own; what is disabled does not run."""
    sources = load(
        function(
            "{A: {Type: Schedule, Properties: {Schedule: rate(5 minutes), Input: '{}', Description: d}},"
            "B: {Type: ScheduleV2, Properties: {ScheduleExpression: cron(0 8 * * ? *),"
            " ScheduleExpressionTimezone: Europe/Berlin, Name: mine}},"
            "C: {Type: Schedule, Properties: {Schedule: rate(1 day), Enabled: false}},"
            "D: {Type: Schedule, Properties: {Schedule: rate(1 day), State: DISABLED}}}",
            "AutoPublishAlias: live,",
        )
        + "  R: {Type: AWS::Events::Rule, Properties: {ScheduleExpression: rate(1 hour),"
        " Targets: [{Id: a, Arn: !GetAtt F.Arn}]}}\n"
        "  S: {Type: AWS::Scheduler::Schedule, Properties: {ScheduleExpression: 'at(2030-01-01T00:00:00)',"
        " Target: {Arn: !Ref F.Alias, Input: '[1]'}}}\n"
    ).event_sources.schedules
    assert [(each.name, each.function, each.qualifier, each.text, each.event) for each in sources] == [
        ("coldframe-FA", "F", "live", "rate(5 minutes)", b"{}"),
        ("mine", "F", "live", "cron(0 8 * * ? *)", None),
        ("coldframe-R", "F", None, "rate(1 hour)", None),
        ("coldframe-S", "F", "live", "at(2030-01-01T00:00:00)", b"[1]"),
    ]
    assert [str(each.time_zone) for each in sources] == ["UTC", "Europe/Berlin", "UTC", "UTC"]
    assert sources[1].arn == "arn:aws:scheduler:us-east-1:123456789012:schedule/default/mine"


def test_queues(load: Load) -> None:
    """Events of a function and mappings of their own; what is disabled is not read."""
    mappings = load(
        function(
            "{A: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn, BatchSize: 100,"
            " MaximumBatchingWindowInSeconds: 5, ScalingConfig: {MaximumConcurrency: 3},"
            " FunctionResponseTypes: [ReportBatchItemFailures]}},"
            "B: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn, Enabled: false}}}"
        )
        + "  M: {Type: AWS::Lambda::EventSourceMapping, Properties: {FunctionName: !Ref F,"
        " EventSourceArn: !GetAtt Q.Arn}}\n"
    ).event_sources.mappings
    first, second = mappings
    assert (first.function, first.queue, first.batch_size, first.window_s) == ("F", "coldframe-Q", 100, 5)
    assert (first.maximum_concurrency, first.reports_failures, first.visibility_s) == (3, True, 90)
    assert (second.batch_size, second.window_s, second.reports_failures) == (10, 0, False)
    assert second.maximum_concurrency is None


def test_pollers_exclude_a_limit(load: Load) -> None:
    """Provisioned pollers alone are ignored here; beside a limit of concurrency AWS refuses them."""
    pollers = "ProvisionedPollerConfig: {MinimumPollers: 2}"
    limit = "ScalingConfig: {MaximumConcurrency: 3}"
    event = "{A: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn, "
    alone, both = (
        "\n".join(lines(load(function(f"{event}{properties}}}}}}}")).notes))
        for properties in (pollers, f"{pollers}, {limit}")
    )
    assert "AWS would refuse" not in alone
    assert "AWS would refuse: F.Events.A.Properties.ProvisionedPollerConfig: it excludes" in both


def test_log_groups(load: Load) -> None:
    """Events of a function and subscriptions of their own name the functions that write to the group."""
    template = load(
        function(
            "{A: {Type: CloudWatchLogs,"
            " Properties: {LogGroupName: !Ref L, FilterPattern: '{ $.b IS TRUE }'}},"
            "B: {Type: CloudWatchLogs, Properties: {LogGroupName: elsewhere, FilterPattern: ''}}}"
        )
        + "  L: {Type: AWS::Logs::LogGroup, Properties: {LogGroupName: mine}}\n"
        f"  G: {{Type: AWS::Serverless::Function, Properties: {{{FUNCTION},"
        " LoggingConfig: {LogGroup: !Ref L}}}\n"
        "  S: {Type: AWS::Logs::SubscriptionFilter, Properties: {DestinationArn: !GetAtt G.Arn,"
        " LogGroupName: /aws/lambda/F, FilterPattern: '[a, b]'}}\n"
        "  T: {Type: AWS::Logs::SubscriptionFilter, Properties: {DestinationArn: 'arn:aws:kinesis:x',"
        " LogGroupName: /aws/lambda/F, FilterPattern: ''}}\n"
    )
    first, second = template.event_sources.subscriptions
    assert (first.name, first.group, first.function) == ("coldframe-FA", "mine", "F")
    assert (second.name, second.function) == ("coldframe-S", "G")
    assert (first.sources, second.sources) == (frozenset({"G"}), frozenset({"F"}))
    assert (first.pattern.field, second.pattern.is_everything) == ("b", True)
    assert [line for line in lines(template.notes) if "Runtime" not in line] == [
        "Ignored: F.Events.B.Properties.LogGroupName: no function of this template writes to this log group.",
        "Ignored: S.FilterPattern: every line is passed on: only { $.field IS TRUE } is matched here.",
        "Ignored: T.DestinationArn: it is not a function that runs here.",
        "Ignored: T.LogGroupName, T.FilterPattern: it is not read on this machine.",
    ]


def test_sources_elsewhere(load: Load) -> None:
    """A queue or a function that is not here is named; the function runs without."""
    template = load(
        function(
            "{A: {Type: SQS, Properties: {Queue: !ImportValue theirs}},"
            "B: {Type: SQS, Properties: {Queue: 'arn:aws:sqs:us-east-1:1:other'}},"
            "C: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn,"
            " FilterCriteria: {Filters: [{Pattern: '{}'}]}}}}"
        )
        + "  M: {Type: AWS::Lambda::EventSourceMapping, Properties: {FunctionName: other,"
        " EventSourceArn: !GetAtt Q.Arn}}\n"
        "  N: {Type: AWS::Lambda::EventSourceMapping, Properties: {FunctionName: !Ref F,"
        " EventSourceArn: 'arn:aws:kinesis:us-east-1:1:stream/s', FilterCriteria: {Filters: []}}}\n"
    )
    assert [mapping.queue for mapping in template.event_sources.mappings] == ["coldframe-Q"]
    ignored = [line for line in lines(template.notes) if "Runtime" not in line]
    assert ignored == [
        "Ignored: F.Events.A.Properties.Queue: its source is not in this template.",
        "Ignored: F.Events.B.Properties.Queue: its queue is not in this template.",
        "Ignored: M.FunctionName: it is not a function that runs here.",
        "Ignored: N.EventSourceArn: only SQS queues of this template are read.",
        "Ignored: F.Events.C.Properties.FilterCriteria, M.EventSourceArn: it is not read on this machine.",
        "Ignored: N.FilterCriteria: every message is passed on.",
    ]


@pytest.mark.parametrize(
    ("event", "found"),
    [
        ("{Type: Schedule, Properties: {Schedule: rate(5 minute)}}", r"rate\(5 minute\).*expected"),
        ("{Type: Schedule, Properties: {}}", "Schedule is missing"),
        ("{Type: Schedule, Properties: {Schedule: 'at(2030-01-01T00:00:00)'}}", "expected rate"),
        ("{Type: Schedule, Properties: {Schedule: rate(1 day), Input: 'no json'}}", "is not JSON"),
        (
            "{Type: ScheduleV2, Properties: {ScheduleExpression: rate(1 day),"
            " ScheduleExpressionTimezone: Nowhere}}",
            "expected a time zone",
        ),
        ("{Type: SQS, Properties: {}}", "Queue is missing"),
        ("{Type: CloudWatchLogs, Properties: {}}", "LogGroupName is missing"),
        ("{Type: SQS, Properties: {Queue: !GetAtt Q.Arn, BatchSize: 0}}", "expected at least 1"),
    ],
)
def test_refused_sources(load: Load, event: str, found: str) -> None:
    """What AWS would refuse is an error that names the place."""
    with pytest.raises(TemplateError, match=found):
        load(function(f"{{A: {event}}}"))


def test_redrive(load: Load) -> None:
    """A queue for failed messages is made as the template says; a policy without one is refused."""
    queues = "  D: {Type: AWS::SQS::Queue}\n  P: {Type: AWS::SQS::Queue, Properties: {RedrivePolicy: "
    policy = "{maxReceiveCount: '3', deadLetterTargetArn: !GetAtt D.Arn}"
    template = load(function("{}") + f"{queues}{policy}}}}}\n")
    assert template.queues[2].attributes["RedrivePolicy"] == (
        '{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:123456789012:coldframe-D", "maxReceiveCount": 3}'
    )
    with pytest.raises(TemplateError, match="needs deadLetterTargetArn"):
        load(function("{}") + f"{queues}{{maxReceiveCount: 3}}}}}}\n")
