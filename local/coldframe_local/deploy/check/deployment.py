"""Subject of `coldframe check`: stack and bundle, and the links of functions, aliases and APIs."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from coldframe.capacity import limits as quotas
from coldframe.capacity.limits import Quota
from coldframe.config import PREFIX
from coldframe.errors import BundleMissing, ColdframeError
from coldframe.model.bundle import EncoderManifest, Manifest, load_pair
from coldframe.model.files import built_models, no_models
from coldframe_local.emulator.template.syntax.cloudformation import Stack

FUNCTION = "AWS::Lambda::Function"
ALIAS = "AWS::Lambda::Alias"
PERMISSION = "AWS::Lambda::Permission"
HTTP_API = "AWS::ApiGatewayV2::Api"
SCALABLE_TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
DEPLOYMENT_GROUP = "AWS::CodeDeploy::DeploymentGroup"
ROLE = "AWS::IAM::Role"

Properties = Mapping[str, Any]


class InitFailed(ColdframeError):
    """The function's module does not load on this machine."""


@dataclass(frozen=True)
class Finding:
    """A fault that AWS would refuse. rule: its name. where: the resource, parameter or file."""

    rule: str
    where: str
    problem: str
    fix: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.where}: {self.problem}. {self.fix}."


@dataclass(frozen=True)
class Integration:
    """How an API calls a function. alias: None when it calls the function itself, `$LATEST` that is."""

    api: str
    function: str
    alias: str | None
    timeout_ms: int


@dataclass(frozen=True)
class Deployment:
    """A deployment to check.
    models: every one in `model_dir`, which the image carries, with its encoder. account_concurrency: the
    account's limit. measure_init_s: seconds that the function takes to load, by its setting of the models to
    serve and the initialization type of its environment.
    """

    stack: Stack
    model_dir: Path
    models: Mapping[str, tuple[Manifest, EncoderManifest]]
    account_concurrency: int
    measure_init_s: Callable[[str, str], float]

    @cached_property
    def functions(self) -> dict[str, Properties]:
        return dict(self.stack.of_type(FUNCTION))

    @cached_property
    def images(self) -> dict[str, Properties]:
        """Functions that serve the model."""
        return {n: p for n, p in self.functions.items() if p.get("PackageType") == "Image"}

    @cached_property
    def aliases(self) -> dict[str, Properties]:
        return dict(self.stack.of_type(ALIAS))

    @cached_property
    def integrations(self) -> list[Integration]:
        return [call for name, api in self.stack.of_type(HTTP_API).items() for call in self._calls(name, api)]

    def _calls(self, name: str, api: Properties) -> Iterator[Integration]:
        for route in _values(api.get("Body", {}), "x-amazon-apigateway-integration"):
            for target in references(route.get("uri")):
                if target in self.aliases:
                    yield Integration(name, self.function_of(target), target, _timeout_ms(route))
                elif target in self.functions:
                    yield Integration(name, target, None, _timeout_ms(route))

    def function_of(self, alias: str) -> str:
        """The function that an alias belongs to."""
        return str(self.aliases[alias]["FunctionName"]["Ref"])

    def provisioned(self) -> Iterator[tuple[str, str, int]]:
        """(function, alias, most environments) of each alias with provisioned concurrency."""
        for alias, properties in self.aliases.items():
            function = self.function_of(alias)
            config = properties.get("ProvisionedConcurrencyConfig", {})
            most = number_of(config.get("ProvisionedConcurrentExecutions"), 0)
            for target in self.stack.of_type(SCALABLE_TARGET).values():
                if function in references(target["ResourceId"]):
                    most = max(most, number_of(target["MaxCapacity"], 0))
            if most:
                yield function, alias, most

    def has_snapstart(self, function: str) -> bool:
        return bool(self.functions[function].get("SnapStart", {}).get("ApplyOn") == "PublishedVersions")

    def initialization_type(self, function: str) -> str:
        """How the environments of a function come to be, in Lambda's words."""
        if self.has_snapstart(function):
            return "snap-start"
        provisioned = any(function == name for name, _, _ in self.provisioned())
        return "provisioned-concurrency" if provisioned else "on-demand"


def load_deployment(stack: Stack, model_dir: Path, account_concurrency: int) -> Deployment:
    """The stack with the models in `model_dir`. Raises BundleError."""
    models = {name: load_pair(model_dir, name) for name in built_models(model_dir)}
    if not models:
        raise BundleMissing(no_models(model_dir))
    return Deployment(stack, model_dir, models, account_concurrency, partial(measure_init_s, model_dir))


def measure_init_s(model_dir: Path, models: str, initialization_type: str) -> float:
    """Seconds until a fresh process has loaded the predict function. Raises InitFailed.

    models: the setting of the models to serve. initialization_type: Lambda's word for it; ahead of traffic
    more is loaded than on demand.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    environ = {
        **inherited,
        "COLDFRAME_MODEL_DIR": str(model_dir),
        "COLDFRAME_MODELS": models,
        "AWS_LAMBDA_INITIALIZATION_TYPE": initialization_type,
    }
    started = time.perf_counter()
    command = [sys.executable, "-c", "import coldframe_functions.predict.app"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    if done.returncode:
        raise InitFailed(f"The predict function does not load: {done.stderr.strip().splitlines()[-1]}")
    return time.perf_counter() - started


def references(value: Any) -> Iterator[str]:
    """Logical ids that a value refers to."""
    match value:
        case {"Ref": str(name)}:
            yield name
        case {"Fn::GetAtt": [str(name), *_]}:
            yield name
        case {"Fn::Sub": inner}:
            for name in re.findall(r"\$\{([^!}.]+)", text_of(inner)):
                yield name
            yield from (
                reference
                for item in (inner[1:] if isinstance(inner, list) else [])
                for reference in references(item)
            )
        case dict():
            yield from (reference for item in value.values() for reference in references(item))
        case list():
            yield from (reference for item in value for reference in references(item))


def over_quota(rule: str, where: str, what: str, value: int, quota: Quota, fix: str) -> Finding:
    """A number above its quota."""
    return Finding(rule, where, f"{what} is {value:,}, expected at most {quota}", fix)


def variables_of(properties: Properties) -> dict[str, Any]:
    """Environment variables of a function."""
    return dict(properties.get("Environment", {}).get("Variables", {}))


def number_of(value: Any, default: int) -> int:
    """A number of the template; `default` where there is none, or none before it is deployed."""
    is_number = isinstance(value, int) or (isinstance(value, str) and value.isdecimal())
    return int(value) if is_number else default


def text_of(value: Any) -> str:
    """A string, or what is not decided yet as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def _timeout_ms(integration: Properties) -> int:
    return number_of(integration.get("timeoutInMillis"), quotas.HTTP_INTEGRATION.value)


def _values(value: Any, key: str) -> Iterator[Any]:
    """Everything under `key`, however deep."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name == key:
                yield item
            else:
                yield from _values(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _values(item, key)
