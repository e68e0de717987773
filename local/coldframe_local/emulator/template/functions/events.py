"""How a template wants asynchronous events of a function to be treated.

SAM's `EventInvokeConfig` belongs to the alias of `AutoPublishAlias`, or to `$LATEST` without one; a resource
of its own names its qualifier.
"""

from __future__ import annotations

from collections.abc import Sequence

from coldframe.capacity.admission import LATEST
from coldframe_local.emulator.lambda_service.event_sources.destinations import EventInvokeConfig
from coldframe_local.emulator.template.syntax.errors import NotKnown
from coldframe_local.emulator.template.syntax.properties import Properties

_DEFAULTS = EventInvokeConfig()
# An ARN that only an account knows, as of `Fn::ImportValue`: no reason not to run the function.
_OF_ANOTHER_STACK = "a destination of another stack"


def read_event_invoke_configs(
    name: str, alias: str | None, own: Properties, resources: Sequence[Properties]
) -> dict[str, EventInvokeConfig]:
    """By qualifier. name: of the function. own: its property `EventInvokeConfig`.

    resources: properties of every AWS::Lambda::EventInvokeConfig. Raises TemplateError.
    """
    configs = {alias or LATEST: _config(own)} if [*own] else {}
    for properties in resources:
        function = properties.word("FunctionName") or ""
        if function.split(":")[-1] == name:
            configs[properties.word("Qualifier") or LATEST] = _config(properties)
    return configs


def _config(properties: Properties) -> EventInvokeConfig:
    attempts = properties.whole_number("MaximumRetryAttempts", 0)
    age_s = properties.whole_number("MaximumEventAgeInSeconds", 0)
    destinations = _destinations(properties)
    return EventInvokeConfig(
        maximum_retry_attempts=_DEFAULTS.maximum_retry_attempts if attempts is None else attempts,
        maximum_age_s=_DEFAULTS.maximum_age_s if age_s is None else age_s,
        on_success=destinations.get("OnSuccess"),
        on_failure=destinations.get("OnFailure"),
    )


def _destinations(properties: Properties) -> dict[str, str]:
    try:
        destinations = properties.map("DestinationConfig")
    except NotKnown:
        return {}
    return {kind: _destination(each) for kind, each in destinations.maps()}


def _destination(properties: Properties) -> str:
    kind = properties.word("Type")
    try:
        # SAM makes a queue or a topic of its own where the destination is left out: there is none here.
        return properties.word("Destination") or f"SAM's own {kind}"
    except NotKnown:
        return _OF_ANOTHER_STACK
