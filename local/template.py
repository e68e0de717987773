"""template.yaml as the emulator runs it: functions, APIs, tables, buckets and queues.

Reads SAM's own resources, the way SAM's translator and CloudFormation would make them:
parameters, conditions, Globals, implicit APIs. `tests/integration/test_sam.py` holds both
readings side by side.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from dockerfile_parse import DockerfileParser

from local.destinations import EventInvokeConfig
from local.gateway_types import Api
from local.intrinsics import Intrinsics, TemplateError
from local.process import ACCOUNT_ID, FunctionSettings
from local.template_apis import ApiSource, read_apis
from local.template_events import read_event_invoke_configs

STACK_NAME = "coldframe"
REGION = "us-east-1"

FUNCTION = "AWS::Serverless::Function"
TABLE = "AWS::DynamoDB::Table"
SIMPLE_TABLE = "AWS::Serverless::SimpleTable"
BUCKET = "AWS::S3::Bucket"
QUEUE = "AWS::SQS::Queue"
EVENT_INVOKE_CONFIG = "AWS::Lambda::EventInvokeConfig"

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
    return _Reader(path, _parse(path), parameters or {}, region, url).read()


class _CloudFormationLoader(yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader):  # type: ignore[misc]
    """YAML with CloudFormation's short tags, read as the long form: `!Ref X` is {"Ref": "X"}."""


def _intrinsic(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)  # noqa: S101 - YAML has no fourth kind
        value = loader.construct_mapping(node, deep=True)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_CloudFormationLoader.add_multi_constructor("!", _intrinsic)


def _parse(path: Path) -> dict[str, Any]:
    try:
        content = path.read_text()
    except OSError as exc:
        raise TemplateError(
            f"{path} cannot be read: {exc.strerror}. Name a SAM template with --template."
        ) from exc
    try:
        document = yaml.load(content, _CloudFormationLoader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        problem = getattr(exc, "problem", None) or "not YAML"
        raise TemplateError(f"{path}{place}: {problem}. Expected a SAM template in YAML or JSON.") from exc
    if not isinstance(document, dict) or not isinstance(document.get("Resources"), dict):
        raise TemplateError(
            f"{path} has no Resources. Expected a SAM template; name another with --template."
        )
    return document


class _Reader:
    """Reads one template."""

    def __init__(
        self, path: Path, document: dict[str, Any], given: Mapping[str, str], region: str, url: str
    ) -> None:
        self._path = path
        self._folder = path.resolve().parent
        self._region = region
        self._url = url
        self._resources: dict[str, Any] = document["Resources"]
        self._globals: dict[str, Any] = document.get("Globals") or {}
        self._conditions: dict[str, Any] = document.get("Conditions") or {}
        names = _pseudo_parameters(region) | _parameters(document.get("Parameters") or {}, given)
        mappings = document.get("Mappings") or {}
        self._intrinsics = Intrinsics(names, self._identity, self._conditions, mappings)

    def read(self) -> Template:
        functions = tuple(self._function(*item) for item in self._of_types(FUNCTION))
        if not functions:
            raise TemplateError(
                f"{self._path} has no resource of type {FUNCTION}: there is nothing to run. "
                "Add a function, or name another template with --template."
            )
        tables = tuple(self._table(*item) for item in self._of_types(TABLE, SIMPLE_TABLE))
        buckets = tuple(Bucket(self._name(name)) for name, _ in self._of_types(BUCKET))
        queues = tuple(self._queue(*item) for item in self._of_types(QUEUE))
        return Template(functions, read_apis(self._api_source()), tables, buckets, queues)

    def _api_source(self) -> ApiSource:
        functions = dict(self._of_types(FUNCTION))
        return ApiSource(
            functions=functions,
            function_names={name: self._name(name) for name in functions},
            aliases={name: self._alias(name, properties) for name, properties in functions.items()},
            resources={name: (kind, self._properties(name)) for name, kind in self._kinds()},
            resolve=self._resolve,
        )

    # Resources.

    def _kinds(self) -> Iterator[tuple[str, str]]:
        for name, resource in self._resources.items():
            if not isinstance(resource, dict) or not isinstance(resource.get("Type"), str):
                raise TemplateError(f"Resources.{name} has no Type. Expected one like {FUNCTION}.")
            yield name, resource["Type"]

    def _exists(self, name: str) -> bool:
        condition = self._resources[name].get("Condition")
        return condition is None or bool(
            self._intrinsics.resolve({"Condition": condition}, f"{name}.Condition")
        )

    def _of_types(self, *types: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, kind in self._kinds():
            if kind in types and self._exists(name):
                yield name, self._properties(name)

    def _properties(self, name: str) -> dict[str, Any]:
        """With Globals merged in, not yet resolved: much of it may be of no interest here."""
        resource = self._resources[name]
        section = resource["Type"].removeprefix("AWS::Serverless::")
        merged: dict[str, Any] = _merged(self._globals.get(section) or {}, resource.get("Properties") or {})
        return merged

    def _resolve(self, value: Any, where: str) -> Any:
        return self._intrinsics.resolve(value, where)

    # Names.

    def _identity(self, name: str, attribute: str | None) -> str | None:
        """What CloudFormation would call a resource, or an attribute of it."""
        function, dot, of_function = name.partition(".")
        if dot and function in self._resources and of_function in ("Alias", "Version"):
            return self._qualified_arn(function, of_function)
        if name not in self._resources:
            return None
        kind = self._resources[name]["Type"]
        if attribute is None:
            return self._reference(name, kind)
        if attribute == "Arn":
            return self._arn(name, kind)
        return self._attribute(name, kind, attribute)

    def _reference(self, name: str, kind: str) -> str:
        if kind == QUEUE:
            return f"https://sqs.{self._region}.amazonaws.com/{ACCOUNT_ID}/{self._name(name)}"
        return self._name(name)

    def _name(self, name: str) -> str:
        """The physical name: the one that the template gives, or one that tells where it is from."""
        resource = self._resources[name]
        kind = resource["Type"]
        given = self._properties(name).get(_NAME_PROPERTIES.get(kind, ""))
        if given is not None:
            return str(self._resolve(given, f"{name}.{_NAME_PROPERTIES[kind]}"))
        if kind in (FUNCTION, "AWS::Serverless::HttpApi", "AWS::Serverless::Api"):
            return name
        fifo = ".fifo" if kind == QUEUE and self._properties(name).get("FifoQueue") else ""
        return f"{STACK_NAME}-{name.lower() if kind == BUCKET else name}{fifo}"

    def _arn(self, name: str, kind: str) -> str:
        if kind == BUCKET:
            return f"arn:aws:s3:::{self._name(name)}"
        service, resource = _ARNS.get(kind, (kind.split("::")[1].lower(), ""))
        region = "" if service == "iam" else self._region
        return f"arn:aws:{service}:{region}:{ACCOUNT_ID}:{resource}{self._name(name)}"

    def _attribute(self, name: str, kind: str, attribute: str) -> str | None:
        if kind == "AWS::Serverless::HttpApi" and attribute == "ApiEndpoint":
            return self._url
        if kind == BUCKET and attribute == "DomainName":
            return f"{self._name(name)}.s3.amazonaws.com"
        if kind == QUEUE and attribute == "QueueName":
            return self._name(name)
        if kind == QUEUE and attribute == "QueueUrl":
            return self._reference(name, kind)
        return None

    def _qualified_arn(self, function: str, attribute: str) -> str | None:
        alias = self._alias(function, self._properties(function))
        if alias is None:
            return None
        return f"{self._arn(function, FUNCTION)}:{alias if attribute == 'Alias' else '1'}"

    # Functions.

    def _function(self, name: str, properties: dict[str, Any]) -> Function:
        code = (
            self._image(name, properties) if self._is_image(name, properties) else self._zip(name, properties)
        )
        variables = self._resolve(
            (properties.get("Environment") or {}).get("Variables") or {}, f"{name}.Environment.Variables"
        )
        environ = {variable: _variable(value) for variable, value in variables.items()}
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
                name=self._name(name),
                architecture=self._architecture(name, properties),
            ),
            logical_id=name,
            alias=self._alias(name, properties),
            provisioned_concurrency=self._provisioned(name, properties),
            reserved_concurrency=self._number(name, properties, "ReservedConcurrentExecutions", None),
            event_invoke_configs=read_event_invoke_configs(
                self._name(name),
                self._alias(name, properties),
                properties.get("EventInvokeConfig"),
                [own for _, own in self._of_types(EVENT_INVOKE_CONFIG)],
                self._resolve,
            ),
            other_events=self._other_events(properties),
            is_image=self._is_image(name, properties),
            code=code.paths,
        )

    def _number(self, name: str, properties: Mapping[str, Any], key: str, default: Any) -> Any:
        value = self._resolve(properties.get(key), f"{name}.{key}")
        if value is None:
            return default
        try:
            return int(value)
        except (TypeError, ValueError) as exc:
            raise TemplateError(f"{name}.{key} is {value!r}, expected a whole number.") from exc

    def _architecture(self, name: str, properties: Mapping[str, Any]) -> str:
        architectures = self._resolve(properties.get("Architectures"), f"{name}.Architectures")
        return str(architectures[0]) if architectures else "x86_64"

    def _alias(self, name: str, properties: Mapping[str, Any]) -> str | None:
        alias = self._resolve(properties.get("AutoPublishAlias"), f"{name}.AutoPublishAlias")
        return str(alias) if alias else None

    def _provisioned(self, name: str, properties: Mapping[str, Any]) -> int:
        config = self._resolve(properties.get("ProvisionedConcurrencyConfig"), name) or {}
        requested = self._number(name, config, "ProvisionedConcurrentExecutions", 0)
        if requested and self._alias(name, properties) is None:
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
        if layer not in self._resources:
            return None
        source = self._resolve(self._properties(layer).get("ContentUri"), f"{layer}.ContentUri")
        return self._folder / str(source)

    def _image(self, name: str, properties: Mapping[str, Any]) -> _Code:
        metadata = self._resolve(self._resources[name].get("Metadata"), f"{name}.Metadata") or {}
        config = self._resolve(properties.get("ImageConfig"), f"{name}.ImageConfig") or {}
        context = self._folder / str(metadata.get("DockerContext", "."))
        dockerfile = _Dockerfile.read(
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
        if self._resources[name]["Type"] == SIMPLE_TABLE:
            resolved = _simple_table(resolved)
        ttl = resolved.get("TimeToLiveSpecification") or {}
        parameters = {key: resolved[key] for key in _TABLE_PARAMETERS if key in resolved}
        return Table(
            self._name(name),
            {**parameters, "TableName": self._name(name), "BillingMode": "PAY_PER_REQUEST"},
            ttl.get("AttributeName") if ttl.get("Enabled") else None,
        )

    def _queue(self, name: str, properties: dict[str, Any]) -> Queue:
        given = {key: self._resolve(properties.get(key), f"{name}.{key}") for key in _QUEUE_ATTRIBUTES}
        attributes = {key: _variable(value) for key, value in given.items() if value is not None}
        return Queue(self._name(name), self._arn(name, QUEUE), self._reference(name, QUEUE), attributes)


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


@dataclass(frozen=True, slots=True)
class _Dockerfile:
    """What a stage of a Dockerfile leaves to run.

    copied: what all stages take from the context, and where to.
    """

    command: list[str]
    environ: dict[str, str]
    copied: list[tuple[str, str]]

    @classmethod
    def read(cls, path: Path, function: str, target: str | None) -> _Dockerfile:
        """target: the stage to build; None for the last one."""
        try:
            text = path.read_text()
        except OSError as exc:
            raise TemplateError(
                f"{function}: {path} cannot be read: {exc.strerror}. "
                "Metadata.DockerContext and Metadata.Dockerfile of the function say where it is."
            ) from exc
        structure = DockerfileParser(fileobj=io.StringIO(text)).structure
        instructions = [(each["instruction"], each["value"], each["content"]) for each in structure]
        copied = [
            (source, value.split()[-1])
            for word, value, _ in instructions
            if word == "COPY" and "--from" not in value
            for source in value.split()[:-1]
            if not source.startswith("--")
        ]
        stage = DockerfileParser(fileobj=io.StringIO(_stage(path, instructions, target)))
        return cls(_exec_form(stage.cmd), dict(stage.envs), copied)


def _stage(path: Path, instructions: Sequence[tuple[str, str, str]], target: str | None) -> str:
    """One stage with those that it is built from, as a Dockerfile of its own.

    instructions: each one's word, what follows it, and its lines.
    """
    stages: dict[str, str] = {}
    name = ""
    for word, value, lines in instructions:
        if word == "FROM":
            base, _, alias = re.sub(r"\s+as\s+", " as ", value.lower()).partition(" as ")
            name = alias.strip() or str(len(stages))
            stages[name] = stages.get(base.strip(), lines)
        elif name:  # an ARG may come before the first stage
            stages[name] += lines
    chosen = stages.get((target or name).lower())
    if chosen is None:
        raise TemplateError(f"{path} has no stage {target}; its stages: {', '.join(stages)}.")
    return chosen


def _exec_form(command: str | None) -> list[str]:
    """`CMD ["a", "b"]` as a list; the shell form is one string."""
    try:
        words = json.loads(command or "[]")
    except ValueError:
        return [str(command)]
    return [str(word) for word in words]


_NAME_PROPERTIES = {
    FUNCTION: "FunctionName",
    TABLE: "TableName",
    SIMPLE_TABLE: "TableName",
    BUCKET: "BucketName",
    QUEUE: "QueueName",
    "AWS::Logs::LogGroup": "LogGroupName",
}
# Service and prefix of the resource, where they differ from the type's.
_ARNS = {
    FUNCTION: ("lambda", "function:"),
    TABLE: ("dynamodb", "table/"),
    SIMPLE_TABLE: ("dynamodb", "table/"),
    QUEUE: ("sqs", ""),
    "AWS::Logs::LogGroup": ("logs", "log-group:"),
    "AWS::IAM::Role": ("iam", "role/"),
}
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


def _pseudo_parameters(region: str) -> dict[str, Any]:
    return {
        "AWS::AccountId": ACCOUNT_ID,
        "AWS::NotificationARNs": [],
        "AWS::Partition": "aws",
        "AWS::Region": region,
        "AWS::StackId": f"arn:aws:cloudformation:{region}:{ACCOUNT_ID}:stack/{STACK_NAME}/local",
        "AWS::StackName": STACK_NAME,
        "AWS::URLSuffix": "amazonaws.com",
    }


def _parameters(declared: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """The value of each parameter: what was given, or its default."""
    for name in given:
        if name not in declared:
            known = ", ".join(declared) or "none"
            raise TemplateError(f"The template has no parameter {name}; its parameters: {known}.")
    return {name: _parameter(name, declaration, given.get(name)) for name, declaration in declared.items()}


def _parameter(name: str, declaration: Mapping[str, Any], given: str | None) -> Any:
    if given is None and "Default" not in declaration:
        raise TemplateError(f"The parameter {name} has no default. Give it: --parameter {name}=VALUE.")
    value = _variable(declaration["Default"] if given is None else given)
    kind = str(declaration.get("Type", "String"))
    if kind.startswith("AWS::SSM::") and given is None:
        raise TemplateError(
            f"The parameter {name} is read from SSM on AWS. Give its value: --parameter {name}=VALUE."
        )
    allowed = declaration.get("AllowedValues")
    if allowed and value not in [_variable(choice) for choice in allowed]:
        raise TemplateError(f"The parameter {name} is {value!r}, expected one of {allowed}.")
    if kind == "Number":
        _check_number(name, declaration, value)
    pattern = declaration.get("AllowedPattern")
    if pattern and not re.fullmatch(pattern, value):
        raise TemplateError(f"The parameter {name} is {value!r}, expected the pattern {pattern}.")
    if kind == "CommaDelimitedList" or kind.startswith("List<"):
        return [item.strip() for item in value.split(",")]
    return value


def _check_number(name: str, declaration: Mapping[str, Any], value: str) -> None:
    try:
        number = float(value)
    except ValueError as exc:
        raise TemplateError(f"The parameter {name} is {value!r}, expected a number.") from exc
    low, high = declaration.get("MinValue"), declaration.get("MaxValue")
    if (low is not None and number < float(low)) or (high is not None and number > float(high)):
        bounds = [f"at least {low}"] * (low is not None) + [f"at most {high}"] * (high is not None)
        raise TemplateError(f"The parameter {name} is {value}, expected {' and '.join(bounds)}.")


def _variable(value: Any) -> str:
    """A value as CloudFormation hands it on: always text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _merged(defaults: Any, own: Any) -> Any:
    """Globals under a resource's own properties: maps are merged, lists joined, anything else replaced.

    https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/sam-specification-template-anatomy-globals.html
    """
    if isinstance(defaults, dict) and isinstance(own, dict):
        if _is_intrinsic(defaults) or _is_intrinsic(own):
            return own
        return {**defaults, **{name: _merged(defaults.get(name), value) for name, value in own.items()}}
    if isinstance(defaults, list) and isinstance(own, list):
        return defaults + own
    return own


def _is_intrinsic(value: Mapping[str, Any]) -> bool:
    return len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref", "Condition"))
