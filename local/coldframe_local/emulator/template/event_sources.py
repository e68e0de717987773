"""Event sources of a template besides APIs: schedules, SQS queues and log groups.

They are written as events of a SAM function, or as resources of their own that name the function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from coldframe_local.emulator.lambda_service.event_sources.expressions import At, BadExpression, parse
from coldframe_local.emulator.lambda_service.event_sources.log_subscriptions import (
    FilterPattern,
    LogSubscription,
)
from coldframe_local.emulator.lambda_service.event_sources.schedules import Schedule
from coldframe_local.emulator.lambda_service.event_sources.sqs import REPORT_FAILURES, SqsMapping
from coldframe_local.emulator.lambda_service.settings import ACCOUNT_ID
from coldframe_local.emulator.template.functions.functions import Function
from coldframe_local.emulator.template.stores import Queue
from coldframe_local.emulator.template.syntax.errors import NotKnown, TemplateError
from coldframe_local.emulator.template.syntax.parameters import STACK_NAME
from coldframe_local.emulator.template.syntax.properties import Properties
from coldframe_local.emulator.template.syntax.ref_names import (
    EVENT_SOURCE_MAPPING,
    RULE,
    SCHEDULE,
    SUBSCRIPTION_FILTER,
)
from coldframe_local.emulator.template.syntax.resources import Resources
from coldframe_local.emulator.template.syntax.template_warnings import Effect, Note

_SCHEDULED = {"Schedule": "Schedule", "ScheduleV2": "ScheduleExpression"}
_OFF = ("DISABLED", "false")
_UTC = ZoneInfo("UTC")


@dataclass(frozen=True, slots=True)
class EventSources:
    """schedules: what is due when. mappings: queues that are read. subscriptions: log lines passed on."""

    schedules: tuple[Schedule, ...] = ()
    mappings: tuple[SqsMapping, ...] = ()
    subscriptions: tuple[LogSubscription, ...] = ()


@dataclass(frozen=True, slots=True)
class _FunctionReference:
    """Target of an event source: a function, by its name and qualifier."""

    function: str
    qualifier: str | None


class EventSourceReader:
    """Reads them, and notes in `notes` what cannot run here."""

    def __init__(
        self, resources: Resources, functions: Sequence[Function], region: str, notes: list[Note]
    ) -> None:
        self._resources = resources
        self._region = region
        self._notes = notes
        self._functions = {function.logical_id: function for function in functions}
        self._by_name = {function.settings.name: function for function in functions}

    def read(self, queues: Sequence[Queue]) -> EventSources:
        """Raises TemplateError for what AWS would refuse."""
        by_arn = {queue.arn: queue for queue in queues}
        return EventSources(
            tuple(self._schedules()), tuple(self._mappings(by_arn)), tuple(self._subscriptions())
        )

    def _events(self) -> Iterator[tuple[str, str, _FunctionReference, Properties]]:
        """(id as SAM creates it, type, function, properties) of the functions' events."""
        for name, function in self._functions.items():
            for event, own in self._resources.properties(name).map("Events").maps():
                reference = _FunctionReference(function.settings.name, function.alias)
                yield f"{name}{event}", own.word("Type") or "", reference, own.map("Properties")

    def _schedules(self) -> Iterator[Schedule]:
        for name, kind, reference, properties in self._events():
            if kind in _SCHEDULED:
                name = properties.word("Name") or f"{STACK_NAME}-{name}"
                yield from self._schedule(name, kind == "ScheduleV2", reference, properties, _SCHEDULED[kind])
        for name, properties in self._resources.of_types(RULE):
            if "ScheduleExpression" in properties:
                for target in properties.items("Targets"):
                    yield from self._scheduled_target(name, False, properties, target)
        for name, properties in self._resources.of_types(SCHEDULE):
            yield from self._scheduled_target(name, True, properties, properties.value("Target"))

    def _scheduled_target(
        self, name: str, is_v2: bool, properties: Properties, target: Any
    ) -> Iterator[Schedule]:
        if not isinstance(target, dict):
            raise TemplateError(f"{name} has the target {target!r}, expected a map with Arn.")
        reference = self._reference(f"{name}.Target", target.get("Arn"))
        if reference is not None:
            yield from self._schedule(
                self._resources.name(name), is_v2, reference, properties, "ScheduleExpression", target
            )

    def _schedule(
        self,
        name: str,
        is_v2: bool,
        reference: _FunctionReference,
        properties: Properties,
        key: str,
        target: Mapping[str, Any] | None = None,
    ) -> Iterator[Schedule]:
        text = properties.word(key)
        if text is None:
            raise TemplateError(f"{properties.place(key)} is missing. Write one, like rate(5 minutes).")
        try:
            expression = parse(text)
        except BadExpression as exc:
            raise TemplateError(f"{properties.place(key)}: {exc}.") from exc
        if isinstance(expression, At) and not is_v2:
            raise TemplateError(f"{properties.place(key)} is {text!r}, expected rate(…) or cron(…).")
        text_input = target.get("Input") if target is not None else properties.word("Input")
        if _is_off(properties):
            return
        arn = f"arn:aws:events:{self._region}:{ACCOUNT_ID}:rule/{name}"
        if is_v2:
            arn = f"arn:aws:scheduler:{self._region}:{ACCOUNT_ID}:schedule/default/{name}"
        yield Schedule(
            name,
            reference.function,
            reference.qualifier,
            expression,
            text,
            arn,
            self._region,
            ACCOUNT_ID,
            "aws.scheduler" if is_v2 else "aws.events",
            _input(properties, text_input),
            at_once=is_v2,
            time_zone=_time_zone(properties) if is_v2 else _UTC,
        )

    def _mappings(self, queues: Mapping[str, Queue]) -> Iterator[SqsMapping]:
        for _, kind, reference, properties in self._events():
            if kind == "SQS":
                yield from self._mapping(reference, properties, "Queue", queues)
        for name, properties in self._resources.of_types(EVENT_SOURCE_MAPPING):
            target = self._reference(f"{name}.FunctionName", properties.word("FunctionName"))
            if target is not None:
                yield from self._mapping(target, properties, "EventSourceArn", queues)

    def _mapping(
        self, reference: _FunctionReference, properties: Properties, key: str, queues: Mapping[str, Queue]
    ) -> Iterator[SqsMapping]:
        place = properties.place(key)
        try:
            arn = properties.word(key)
        except NotKnown:
            self._notes.append(Note(Effect.IGNORED, place, "its source is not in this template"))
            return
        if arn is None:
            raise TemplateError(f"{place} is missing. Name a queue: !GetAtt Queue.Arn.")
        if arn not in queues:
            why = "only SQS queues of this template are read" if ":sqs:" not in arn else None
            self._notes.append(Note(Effect.IGNORED, place, why or "its queue is not in this template"))
            return
        mapping = self._of_queue(reference, properties, queues[arn])
        if not _is_off(properties):
            yield mapping

    def _of_queue(self, reference: _FunctionReference, properties: Properties, queue: Queue) -> SqsMapping:
        size = properties.whole_number("BatchSize", 1)
        window_s = properties.whole_number("MaximumBatchingWindowInSeconds", 0) or 0
        responses = [str(each) for each in properties.items("FunctionResponseTypes")]
        most = properties.map("ScalingConfig").whole_number("MaximumConcurrency", 2)
        if most is not None and "ProvisionedPollerConfig" in properties:
            place = properties.place("ProvisionedPollerConfig")
            self._notes.append(Note(Effect.REFUSED, place, "it excludes ScalingConfig.MaximumConcurrency"))
        return SqsMapping(
            reference.function,
            reference.qualifier,
            queue.name,
            queue.arn,
            self._region,
            10 if size is None else size,
            float(window_s),
            most,
            REPORT_FAILURES in responses,
            float(queue.visibility_s),
        )

    def _subscriptions(self) -> Iterator[LogSubscription]:
        for name, kind, reference, properties in self._events():
            if kind == "CloudWatchLogs":
                yield from self._subscription(f"{STACK_NAME}-{name}", reference, properties)
        for name, properties in self._resources.of_types(SUBSCRIPTION_FILTER):
            target = self._reference(f"{name}.DestinationArn", properties.word("DestinationArn"))
            if target is not None:
                yield from self._subscription(self._resources.name(name), target, properties)

    def _subscription(
        self, name: str, reference: _FunctionReference, properties: Properties
    ) -> Iterator[LogSubscription]:
        group, pattern = properties.word("LogGroupName"), properties.word("FilterPattern") or ""
        if group is None:
            raise TemplateError(f"{properties.place('LogGroupName')} is missing. Name a log group.")
        sources = frozenset(
            function.settings.name for function in self._functions.values() if function.log_group == group
        )
        if not sources:
            why = "no function of this template writes to this log group"
            self._notes.append(Note(Effect.IGNORED, properties.place("LogGroupName"), why))
            return
        subscription = LogSubscription(
            name, group, sources, reference.function, reference.qualifier, FilterPattern.parse(pattern)
        )
        if subscription.pattern.is_everything and pattern.strip():
            why = "every line is passed on: only { $.field IS TRUE } is matched here"
            self._notes.append(Note(Effect.IGNORED, properties.place("FilterPattern"), why))
        yield subscription

    def _reference(self, place: str, name: Any) -> _FunctionReference | None:
        """Function that a name or an ARN refers to; None if it does not run here."""
        parts = str(name).split(":function:")[-1].split(":")
        if parts[0] in self._by_name:
            return _FunctionReference(parts[0], parts[1] if len(parts) > 1 else None)
        self._notes.append(Note(Effect.IGNORED, place, "it is not a function that runs here"))
        return None


def _is_off(properties: Properties) -> bool:
    return properties.word("State") in _OFF or properties.word("Enabled") == "false"


def _input(properties: Properties, value: Any) -> bytes | None:
    """The event that a schedule sends. Raises TemplateError where it is not JSON."""
    if value is None:
        return None
    try:
        msgspec.json.decode(str(value))
    except msgspec.DecodeError as exc:
        raise TemplateError(f"{properties.place('Input')} is not JSON. Write it as text in JSON.") from exc
    return str(value).encode()


def _time_zone(properties: Properties) -> ZoneInfo:
    name = properties.word("ScheduleExpressionTimezone") or "UTC"
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        place = properties.place("ScheduleExpressionTimezone")
        raise TemplateError(f"{place} is {name!r}, expected a time zone like Europe/Berlin.") from exc
