"""How a template wants asynchronous events of a function to be treated.

SAM's `EventInvokeConfig` belongs to the alias of `AutoPublishAlias`, or to `$LATEST` without one; a resource
of its own names its qualifier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coldframe.capacity.admission import LATEST
from local.lambda_service.destinations import EventInvokeConfig
from local.template.intrinsics import TemplateError
from local.template.values import as_whole_number

Resolve = Callable[[Any, str], Any]

_DEFAULTS = EventInvokeConfig()
# An ARN that only an account knows, as of `Fn::ImportValue`: no reason not to run the function.
_OF_ANOTHER_STACK = "a destination of another stack"


def read_event_invoke_configs(
    name: str,
    alias: str | None,
    own: Any,
    resources: Sequence[Mapping[str, Any]],
    resolve: Resolve,
) -> dict[str, EventInvokeConfig]:
    """By qualifier. name: of the function. own: its property `EventInvokeConfig`, or None.

    resources: properties of every AWS::Lambda::EventInvokeConfig. Raises TemplateError.
    """
    configs = {alias or LATEST: _config(name, own, resolve)} if own else {}
    for properties in resources:
        function = str(resolve(properties.get("FunctionName"), "EventInvokeConfig.FunctionName"))
        if function.split(":")[-1] == name:
            qualifier = resolve(properties.get("Qualifier"), f"{name}.Qualifier")
            configs[str(qualifier)] = _config(name, properties, resolve)
    return configs


def _config(name: str, properties: Mapping[str, Any], resolve: Resolve) -> EventInvokeConfig:
    where = f"{name}.EventInvokeConfig"
    destinations = _destinations(properties.get("DestinationConfig"), where, resolve)

    def number(key: str, default: float) -> int:
        value = resolve(properties.get(key), f"{where}.{key}")
        return as_whole_number(default if value is None else value, f"{where}.{key}")

    return EventInvokeConfig(
        maximum_retry_attempts=number("MaximumRetryAttempts", _DEFAULTS.maximum_retry_attempts),
        maximum_age_s=number("MaximumEventAgeInSeconds", _DEFAULTS.maximum_age_s),
        on_success=destinations.get("OnSuccess"),
        on_failure=destinations.get("OnFailure"),
    )


def _destinations(value: Any, where: str, resolve: Resolve) -> dict[str, str]:
    try:
        found = resolve(value, f"{where}.DestinationConfig") or {}
    except TemplateError:
        return dict.fromkeys(("OnSuccess", "OnFailure") & value.keys(), _OF_ANOTHER_STACK)
    # SAM makes a queue or a topic of its own where the destination is left out: there is none here.
    return {
        kind: str(each.get("Destination") or f"SAM's own {each.get('Type')}") for kind, each in found.items()
    }
