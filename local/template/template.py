"""template.yaml as the emulator runs it: functions, APIs, tables, buckets and queues.

Reads SAM's own resources, the way SAM's translator and CloudFormation would make them:
parameters, conditions, Globals, implicit APIs. `tests/integration/test_emulated_template.py`
holds both readings side by side.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from local.gateway.definitions import Api
from local.lambda_service.destinations import EventInvokeConfig
from local.lambda_service.settings import FunctionSettings, LoggingConfig
from local.template.apis import ApiSource, read_apis
from local.template.dockerfile import Dockerfile
from local.template.documents import read_document
from local.template.events import read_event_invoke_configs
from local.template.intrinsics import TemplateError, as_text
from local.template.parameters import REGION, parameter_values, pseudo_parameters, why_refused
from local.template.resources import (
    BUCKET,
    EVENT_INVOKE_CONFIG,
    FUNCTION,
    QUEUE,
    SIMPLE_TABLE,
    TABLE,
    Resources,
)
from local.template.values import as_whole_number

# SAM's, where the template says nothing.
_DEFAULT_MEMORY_MB = 128
_DEFAULT_TIMEOUT_S = 3
_LAYERS_PATH = "/opt/python"
_SERVED_EVENTS = frozenset({"HttpApi", "Api"})


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the template.

    settings: as the Lambda service is told. alias: what its events call; None for `$LATEST`.
    event_invoke_configs: of asynchronous events, by the qualifier that they come by.
    other_events: what else would call it on AWS (SQS, Schedule…): nobody does here.
    code: the files and folders that are deployed.
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


@dataclass(frozen=True, slots=True)
class Table:
    """A DynamoDB table. parameters: of boto3's `create_table`. ttl_attribute: when an item expires."""

    name: str
    parameters: Mapping[str, Any]
    ttl_attribute: str | None


@dataclass(frozen=True, slots=True)
class Bucket:
    """An S3 bucket."""

    name: str


@dataclass(frozen=True, slots=True)
class Queue:
    """An SQS queue. url: what `Ref` gives. attributes: of boto3's `create_queue`."""

    name: str
    arn: str
    url: str
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Template:
    """What is to be run."""

    functions: tuple[Function, ...]
    apis: tuple[Api, ...] = ()
    tables: tuple[Table, ...] = ()
    buckets: tuple[Bucket, ...] = ()
    queues: tuple[Queue, ...] = ()

    def with_settings(
        self,
        reserved_concurrency: int | None = None,
        provisioned_concurrency: int | None = None,
        **changes: Any,
    ) -> Template:
        """With other settings for every function.

        changes: fields of `FunctionSettings`. None leaves what the template says.
        """
        concurrency = _given(
            reserved_concurrency=reserved_concurrency, provisioned_concurrency=provisioned_concurrency
        )
        functions = tuple(
            replace(function, settings=replace(function.settings, **_given(**changes)), **concurrency)
            for function in self.functions
        )
        return replace(self, functions=functions)

    def values_of(self, variable: str) -> set[str]:
        """What functions have in a variable."""
        environs = [function.settings.environ for function in self.functions]
        return {environ[variable] for environ in environs if variable in environ}


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def load_template(
    path: Path, parameters: Mapping[str, str] | None = None, region: str = REGION, url: str = ""
) -> Template:
    """The template at `path`.

    parameters: values of the template's parameters, over their defaults.
    url: where the emulator listens, for what refers to the API's address.
    Raises TemplateError when it cannot be run.
    """
    document = read_document(path)
    names = pseudo_parameters(region) | _parameters(document.get("Parameters") or {}, parameters or {})
    return _Reader(path, Resources(document, names, url), region).read()


def _parameters(declared: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Every parameter's value. Raises TemplateError for one that CloudFormation would not take."""
    for name in given:
        if name not in declared:
            known = ", ".join(declared) or "none"
            raise TemplateError(f"The template has no parameter {name}; its parameters: {known}.")
    values = parameter_values(declared, given)
    for name, declaration in declared.items():
        if name not in values:
            raise TemplateError(
                f"The parameter {name} is read from SSM on AWS. Give its value: --parameter {name}=VALUE."
            )
        if reason := why_refused(name, declaration, values[name]):
            raise TemplateError(f"The parameter {reason}.")
    return values


class _Reader:
    """Reads one template."""

    def __init__(self, path: Path, resources: Resources, region: str) -> None:
        self._path = path
        self._folder = path.resolve().parent
        self._region = region
        self._resources = resources
        self._resolve = resources.resolve

    def read(self) -> Template:
        functions = tuple(self._function(*item) for item in self._resources.of_types(FUNCTION))
        if not functions:
            raise TemplateError(
                f"{self._path} has no resource of type {FUNCTION}: there is nothing to run. "
                "Add a function, or name another template with --template."
            )
        tables = tuple(self._table(*item) for item in self._resources.of_types(TABLE, SIMPLE_TABLE))
        buckets = tuple(Bucket(self._resources.name(name)) for name, _ in self._resources.of_types(BUCKET))
        queues = tuple(self._queue(*item) for item in self._resources.of_types(QUEUE))
        return Template(functions, read_apis(self._api_source()), tables, buckets, queues)

    def _api_source(self) -> ApiSource:
        resources = self._resources
        functions = dict(resources.of_types(FUNCTION))
        return ApiSource(
            functions=functions,
            function_names={name: resources.name(name) for name in functions},
            aliases={name: resources.alias(name) for name in functions},
            resources={name: (kind, resources.properties(name)) for name, kind in resources.kinds()},
            resolve=self._resolve,
        )

    # Functions.

    def _function(self, name: str, properties: dict[str, Any]) -> Function:
        code = (
            self._image(name, properties) if self._is_image(name, properties) else self._zip(name, properties)
        )
        variables = self._resolve(
            (properties.get("Environment") or {}).get("Variables") or {}, f"{name}.Environment.Variables"
        )
        environ = {variable: as_text(value) for variable, value in variables.items()}
        return Function(
            FunctionSettings(
                handler=code.handler,
                task_root=code.task_root,
                memory_mb=self._number(name, properties, "MemorySize", _DEFAULT_MEMORY_MB),
                timeout_s=float(self._number(name, properties, "Timeout", _DEFAULT_TIMEOUT_S)),
                environ={
                    # Folders of the image are where they were copied from.
                    **{key: code.folders.get(text, text) for key, text in (code.environ | environ).items()},
                    "AWS_REGION": self._region,
                },
                name=self._resources.name(name),
                architecture=self._architecture(name, properties),
                runtime=self._resolve(properties.get("Runtime"), f"{name}.Runtime"),
                logging=LoggingConfig.of(
                    self._resolve(properties.get("LoggingConfig"), f"{name}.LoggingConfig") or {}
                ),
            ),
            logical_id=name,
            alias=self._resources.alias(name),
            provisioned_concurrency=self._provisioned(name, properties),
            reserved_concurrency=self._number(name, properties, "ReservedConcurrentExecutions", None),
            event_invoke_configs=read_event_invoke_configs(
                self._resources.name(name),
                self._resources.alias(name),
                properties.get("EventInvokeConfig"),
                [own for _, own in self._resources.of_types(EVENT_INVOKE_CONFIG)],
                self._resolve,
            ),
            other_events=self._other_events(properties),
            is_image=self._is_image(name, properties),
            code=code.paths,
        )

    def _number(self, name: str, properties: Mapping[str, Any], key: str, default: Any) -> Any:
        value = self._resolve(properties.get(key), f"{name}.{key}")
        return default if value is None else as_whole_number(value, f"{name}.{key}")

    def _architecture(self, name: str, properties: Mapping[str, Any]) -> str:
        architectures = self._resolve(properties.get("Architectures"), f"{name}.Architectures")
        return str(architectures[0]) if architectures else "x86_64"

    def _provisioned(self, name: str, properties: Mapping[str, Any]) -> int:
        config = self._resolve(properties.get("ProvisionedConcurrencyConfig"), name) or {}
        requested = self._number(name, config, "ProvisionedConcurrentExecutions", 0)
        if requested and self._resources.alias(name) is None:
            raise TemplateError(
                f"{name} has provisioned concurrency, but no AutoPublishAlias. "
                "It belongs to an alias: add `AutoPublishAlias: live`."
            )
        return int(requested)

    def _other_events(self, properties: Mapping[str, Any]) -> tuple[str, ...]:
        events = properties.get("Events") or {}
        return tuple(event["Type"] for event in events.values() if event.get("Type") not in _SERVED_EVENTS)

    def _is_image(self, name: str, properties: Mapping[str, Any]) -> bool:
        return bool(self._resolve(properties.get("PackageType", "Zip"), f"{name}.PackageType") == "Image")

    def _zip(self, name: str, properties: Mapping[str, Any]) -> _Code:
        handler = self._resolve(properties.get("Handler"), f"{name}.Handler")
        runtime = str(self._resolve(properties.get("Runtime"), f"{name}.Runtime") or "")
        source = self._resolve(properties.get("CodeUri"), f"{name}.CodeUri")
        if not handler or not isinstance(source, str) or not runtime.startswith("python"):
            raise TemplateError(
                f"{name} has Handler {handler!r}, Runtime {runtime!r} and CodeUri {source!r}; expected a "
                "Python function in a local folder. Only those are run on this machine."
            )
        found = [self._layer(layer) for layer in properties.get("Layers") or []]
        layers = [folder / "python" for folder in found if folder is not None]
        environ = {"PYTHONPATH": os.pathsep.join(map(str, layers))} if layers else {}
        folder = self._folder / source
        return _Code(str(handler), folder, environ, (folder, *layers))

    def _layer(self, value: Any) -> Path | None:
        """The folder of a layer; None for one that exists in an account only."""
        layer = value.get("Ref") if isinstance(value, dict) else None
        if not isinstance(layer, str) or layer not in self._resources:
            return None
        source = self._resolve(self._resources.properties(layer).get("ContentUri"), f"{layer}.ContentUri")
        return self._folder / str(source)

    def _image(self, name: str, properties: Mapping[str, Any]) -> _Code:
        metadata = self._resources.metadata(name)
        config = self._resolve(properties.get("ImageConfig"), f"{name}.ImageConfig") or {}
        context = self._folder / str(metadata.get("DockerContext", "."))
        dockerfile = Dockerfile.read(
            context / str(metadata.get("Dockerfile", "Dockerfile")), name, metadata.get("DockerBuildTarget")
        )
        command = config.get("Command") or dockerfile.command
        if config.get("EntryPoint") or len(command) != 1:
            raise TemplateError(
                f"{name} starts {command!r}, expected the handler alone: AWS's Python base image takes it "
                'as its one argument. Write CMD ["package.module.handler"] or ImageConfig.Command, and no '
                "EntryPoint."
            )
        copied = [(context / source, destination.rstrip("/")) for source, destination in dockerfile.copied]
        layers = [str(source) for source, destination in copied if destination == _LAYERS_PATH]
        return _Code(
            str(command[0]),
            context,
            {**dockerfile.environ, **({"PYTHONPATH": os.pathsep.join(layers)} if layers else {})},
            tuple(source for source, _ in copied),
            {destination: str(source) for source, destination in copied},
        )

    # Stores.

    def _table(self, name: str, properties: dict[str, Any]) -> Table:
        resolved = self._resolve(properties, name)
        if self._resources.kind(name) == SIMPLE_TABLE:
            resolved = _simple_table(resolved)
        ttl = resolved.get("TimeToLiveSpecification") or {}
        parameters = {key: resolved[key] for key in _TABLE_PARAMETERS if key in resolved}
        return Table(
            self._resources.name(name),
            {**parameters, "TableName": self._resources.name(name), "BillingMode": "PAY_PER_REQUEST"},
            ttl.get("AttributeName") if ttl.get("Enabled") else None,
        )

    def _queue(self, name: str, properties: dict[str, Any]) -> Queue:
        given = {key: self._resolve(properties.get(key), f"{name}.{key}") for key in _QUEUE_ATTRIBUTES}
        attributes = {key: as_text(value) for key, value in given.items() if value is not None}
        return Queue(
            self._resources.name(name), self._resources.arn(name), self._resources.reference(name), attributes
        )


@dataclass(frozen=True, slots=True)
class _Code:
    """Where a function's code is, and what its image sets.

    folders: of this machine, by what their place in the image is called.
    """

    handler: str
    task_root: Path
    environ: dict[str, str]
    paths: tuple[Path, ...]
    folders: Mapping[str, str] = field(default_factory=dict)


_TABLE_PARAMETERS = (
    "AttributeDefinitions",
    "KeySchema",
    "GlobalSecondaryIndexes",
    "LocalSecondaryIndexes",
    "StreamSpecification",
)

_QUEUE_ATTRIBUTES = (
    "ContentBasedDeduplication",
    "DelaySeconds",
    "FifoQueue",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "ReceiveMessageWaitTimeSeconds",
    "VisibilityTimeout",
)


def _simple_table(properties: Mapping[str, Any]) -> dict[str, Any]:
    """SAM's table with one key: https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/sam-resource-simpletable.html."""
    key = properties.get("PrimaryKey") or {"Name": "id", "Type": "String"}
    attribute = {"Name": key["Name"], "Type": {"String": "S", "Number": "N", "Binary": "B"}[key["Type"]]}
    return {
        "AttributeDefinitions": [
            {"AttributeName": attribute["Name"], "AttributeType": attribute["Type"]},
        ],
        "KeySchema": [{"AttributeName": attribute["Name"], "KeyType": "HASH"}],
    }
