"""The functions of a template, as settings for the Lambda service."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from coldframe.capacity.limits import DEFAULT_MEMORY, DEFAULT_TIMEOUT, MANAGED_TIMEOUT, MIN_MEMORY, TIMEOUT
from coldframe_local.emulator.lambda_service.event_sources.destinations import EventInvokeConfig
from coldframe_local.emulator.lambda_service.settings import FunctionSettings, LogFormat, LoggingConfig
from coldframe_local.emulator.template.functions.code_location import CodeReader, is_image
from coldframe_local.emulator.template.functions.events import read_event_invoke_configs
from coldframe_local.emulator.template.syntax.errors import NotKnown, TemplateError
from coldframe_local.emulator.template.syntax.properties import Properties
from coldframe_local.emulator.template.syntax.ref_names import EVENT_INVOKE_CONFIG
from coldframe_local.emulator.template.syntax.resources import Resources
from coldframe_local.emulator.template.syntax.template_warnings import Effect, Note

_SERVED_EVENTS = frozenset({"HttpApi", "Api", "CloudWatchLogs", "Schedule", "ScheduleV2", "SQS"})
# Lambda's word for what Python calls a machine.
_ARCHITECTURES = {"aarch64": "arm64", "AMD64": "x86_64"}


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the template.

    settings: as the Lambda service is told. alias: what its events call; None for `$LATEST`.
    event_invoke_configs: of asynchronous events, by the qualifier that they come by.
    other_events: what else would call it on AWS (SNS, Kinesis…): nobody does here.
    code: the files and folders that are deployed. log_group: name of the group that its lines go to.
    """

    settings: FunctionSettings
    logical_id: str
    alias: str | None = None
    provisioned_concurrency: int = 0
    reserved_concurrency: int | None = None
    event_invoke_configs: Mapping[str, EventInvokeConfig] = field(default_factory=dict)
    other_events: tuple[str, ...] = ()
    is_image: bool = False
    code: tuple[Path, ...] = ()
    log_group: str = ""


class FunctionReader:
    """Reads functions, and notes in `notes` what of them is not as on AWS."""

    def __init__(self, resources: Resources, folder: Path, region: str, notes: list[Note]) -> None:
        self._resources = resources
        self._code = CodeReader(resources, folder)
        self._region = region
        self._notes = notes

    def read(self, name: str, properties: Properties) -> Function:
        """Raises NotRunnable and NotKnown for one that is to be left out; TemplateError."""
        resources, alias = self._resources, self._resources.alias(name)
        code = self._code.read(name, properties)
        # Folders of the image are where they were copied from.
        variables = code.environ | self._variables(properties)
        environ = {key: code.folders.get(text, text) for key, text in variables.items()}
        self._notes += code.notes
        self._notes += _differences(properties)
        settings = FunctionSettings(
            handler=code.handler,
            task_root=code.task_root,
            memory_mb=properties.whole_number("MemorySize", MIN_MEMORY.value) or DEFAULT_MEMORY.value,
            timeout_s=float(properties.whole_number("Timeout", 1) or DEFAULT_TIMEOUT.value),
            environ=environ | {"AWS_REGION": self._region},
            name=resources.name(name),
            architecture=_architecture(properties),
            runtime=None if is_image(properties) else properties.word("Runtime"),
            logging=_logging(properties.map("LoggingConfig")),
            snapstart=_snapstart(properties),
        )
        return Function(
            settings,
            logical_id=name,
            alias=alias,
            provisioned_concurrency=_provisioned(name, properties, alias),
            reserved_concurrency=properties.whole_number("ReservedConcurrentExecutions", 0),
            event_invoke_configs=read_event_invoke_configs(
                settings.name,
                alias,
                properties.map("EventInvokeConfig"),
                [own for _, own in resources.of_types(EVENT_INVOKE_CONFIG)],
            ),
            other_events=tuple(_other_events(properties)),
            is_image=is_image(properties),
            code=code.paths,
            log_group=_log_group(settings.name, properties),
        )

    def _variables(self, properties: Properties) -> dict[str, str]:
        """Without those whose value only AWS knows: to be missing is true, and a guess would not be."""
        variables = properties.map("Environment").map("Variables")
        values = {}
        for name in variables:
            try:
                value = variables.word(name)
            except NotKnown as exc:
                self._notes.append(Note(Effect.NOT_SET, variables.place(name), exc.why))
                continue
            if value is not None:
                values[str(name)] = value
        return values


def _architecture(properties: Properties) -> str:
    architectures = properties.items("Architectures")
    architecture = architectures[0] if architectures else "x86_64"
    if architecture not in ("arm64", "x86_64"):
        place = properties.place("Architectures")
        raise TemplateError(f"{place} has {architecture!r}, expected arm64 or x86_64.")
    return str(architecture)


def _snapstart(properties: Properties) -> bool:
    snapstart = properties.map("SnapStart")
    applied = snapstart.word("ApplyOn") or "None"
    if applied not in ("None", "PublishedVersions"):
        raise TemplateError(
            f"{snapstart.place('ApplyOn')} is {applied!r}, expected PublishedVersions or None."
        )
    return applied == "PublishedVersions"


def _logging(properties: Properties) -> LoggingConfig:
    logging = {key: properties.word(key) for key in ("LogFormat", "ApplicationLogLevel", "SystemLogLevel")}
    if logging["LogFormat"] not in (None, *LogFormat):
        log_format, expected = logging["LogFormat"], " or ".join(LogFormat)
        raise TemplateError(f"{properties.place('LogFormat')} is {log_format!r}, expected {expected}.")
    return LoggingConfig.of({key: value for key, value in logging.items() if value is not None})


def _provisioned(name: str, properties: Properties, alias: str | None) -> int:
    config = properties.map("ProvisionedConcurrencyConfig")
    requested = config.whole_number("ProvisionedConcurrentExecutions", 0) or 0
    if requested and alias is None:
        raise TemplateError(
            f"{name} has provisioned concurrency, but no AutoPublishAlias. "
            "It belongs to an alias: add `AutoPublishAlias: live`."
        )
    return requested


def _other_events(properties: Properties) -> Iterator[str]:
    for _, event in properties.map("Events").maps():
        kind = event.word("Type")
        if kind not in _SERVED_EVENTS:
            event.written("Properties")  # one line for the event says it all
            yield str(kind)


def _differences(properties: Properties) -> Iterator[Note]:
    """Differences between the template and this machine."""
    timeout_s = properties.whole_number("Timeout", 1)
    most = MANAGED_TIMEOUT if "CapacityProviderConfig" in properties else TIMEOUT
    if timeout_s is not None and timeout_s > most.value:
        why = f"{timeout_s} s, expected at most {most}"
        yield Note(Effect.REFUSED, properties.place("Timeout"), why)
    machine = _ARCHITECTURES.get(platform.machine(), platform.machine())
    architecture = _architecture(properties)
    if architecture != machine:
        why = f"it has the price of {architecture} and runs on {machine}"
        yield Note(Effect.IGNORED, properties.place("Architectures"), why)
    here = f"python{sys.version_info.major}.{sys.version_info.minor}"
    runtime = None if is_image(properties) else properties.word("Runtime")
    if runtime not in (None, here):
        yield Note(Effect.IGNORED, properties.place("Runtime"), f"{runtime} on AWS, {here} here")


def _log_group(name: str, properties: Properties) -> str:
    """The log group that a template names, or Lambda's own."""
    try:
        named = properties.map("LoggingConfig").word("LogGroup")
    except NotKnown:
        named = None
    return named or f"/aws/lambda/{name}"
