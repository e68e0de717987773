"""`coldframe check`: refuses, before a deployment, what AWS would refuse during it or after.

Every rule has a name, and finds what is wrong in the stack that CloudFormation would make, with the fix.
"""

from collections.abc import Callable, Iterator

from coldframe.config import PREFIX, load_settings
from coldframe.errors import BadSetting
from coldframe_local.deploy.check import concurrency, destinations, limits, queues, subscriptions
from coldframe_local.deploy.check.deployment import Deployment, Finding, variables_of

Rule = Callable[[Deployment], Iterator[Finding]]


def check(deployment: Deployment) -> list[Finding]:
    """Everything that is wrong, in the order of the rules.

    With parameters that CloudFormation refuses there is no stack to check: the findings are these parameters.
    """
    return list(parameter_refused(deployment)) or [finding for rule in RULES for finding in rule(deployment)]


def parameter_refused(deployment: Deployment) -> Iterator[Finding]:
    """A parameter, or some together, that CloudFormation turns down before it creates anything."""
    for refusal in deployment.stack.refusals:
        yield Finding("ParameterRefused", refusal.name, refusal.reason, "Change the parameter")


def setting_refused(deployment: Deployment) -> Iterator[Finding]:
    """A setting that the function refuses, which would fail every init phase."""
    for name, properties in deployment.images.items():
        variables = variables_of(properties)
        settings = {
            k: str(v) for k, v in variables.items() if k.startswith(PREFIX) and not isinstance(v, dict)
        }
        try:
            load_settings(settings)
        except BadSetting as exc:
            yield Finding("SettingRefused", name, str(exc).rstrip("."), "Change it in Environment.Variables")


RULES: tuple[Rule, ...] = (
    parameter_refused,
    setting_refused,
    limits.timeout_over_quota,
    limits.timeout_over_integration,
    limits.memory_over_quota,
    limits.storage_over_quota,
    limits.environment_over_quota,
    limits.layers_over_quota,
    limits.payload_over_quota,
    limits.zip_over_quota,
    limits.image_over_quota,
    limits.model_not_built,
    limits.no_default_model,
    limits.item_over_quota,
    limits.init_over_quota,
    concurrency.concurrency_over_quota,
    concurrency.provisioned_over_reserved,
    concurrency.warming_out_of_order,
    concurrency.provisioned_out_of_order,
    concurrency.provisioned_on_latest,
    concurrency.api_bypasses_alias,
    concurrency.provisioned_with_snapstart,
    concurrency.provisioned_with_weights,
    concurrency.missing_permission,
    destinations.destination_refused,
    destinations.missing_destination_permission,
    queues.visibility_under_timeout,
    queues.missing_partial_failures,
    queues.missing_dead_letter_queue,
    queues.pollers_out_of_order,
    subscriptions.missing_logs_permission,
    subscriptions.logs_invoke_themselves,
    subscriptions.subscriptions_over_quota,
)
