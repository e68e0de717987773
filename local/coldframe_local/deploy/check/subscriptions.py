"""Rules of `coldframe check` about log groups that invoke functions.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/SubscriptionFilters.html, read 2026-11-25
"""

from collections import defaultdict
from collections.abc import Iterator

from coldframe.capacity import limits as quotas
from coldframe_local.deploy.check.deployment import (
    PERMISSION,
    Deployment,
    Finding,
    Properties,
    over_quota,
    references,
    text_of,
)
from coldframe_local.emulator.template.syntax.ref_names import SUBSCRIPTION_FILTER

_LOGS = "logs.amazonaws.com"


def missing_logs_permission(deployment: Deployment) -> Iterator[Finding]:
    """A log group that may not invoke its function: CloudWatch Logs refuses the subscription."""
    permissions = deployment.stack.of_type(PERMISSION).values()
    allowed = {
        target
        for permission in permissions
        if str(permission["Principal"]).startswith("logs.")
        for target in references(permission["FunctionName"])
    }
    for name, _, function in _subscriptions(deployment):
        if function not in allowed:
            yield Finding(
                "MissingLogsPermission",
                name,
                f"no AWS::Lambda::Permission lets {_LOGS} invoke {function}",
                "Add one with the log group as SourceArn, and name it in DependsOn of the subscription",
            )


def logs_invoke_themselves(deployment: Deployment) -> Iterator[Finding]:
    """A function that is invoked by its own log lines: each invocation writes lines, and never ends that."""
    for name, properties, function in _subscriptions(deployment):
        own = deployment.functions[function].get("LoggingConfig", {}).get("LogGroup")
        if own is not None and text_of(own) == text_of(properties.get("LogGroupName")):
            yield Finding(
                "LogsInvokeThemselves",
                name,
                f"its log group is that of {function}, which it invokes: each invocation causes another",
                "Give the function a log group of its own",
            )


def subscriptions_over_quota(deployment: Deployment) -> Iterator[Finding]:
    """More subscriptions of one log group than CloudWatch Logs takes."""
    of_group: defaultdict[str, list[str]] = defaultdict(list)
    for name, properties in deployment.stack.of_type(SUBSCRIPTION_FILTER).items():
        of_group[text_of(properties.get("LogGroupName"))].append(name)
    for names in of_group.values():
        if len(names) > quotas.SUBSCRIPTIONS.value:
            where = ", ".join(names)
            fix = "Let one function receive the lines for all"
            yield over_quota(
                "SubscriptionsOverQuota", where, "their number", len(names), quotas.SUBSCRIPTIONS, fix
            )


def _subscriptions(deployment: Deployment) -> Iterator[tuple[str, Properties, str]]:
    """(subscription, its properties, function) of each one that invokes a function of the stack."""
    for name, properties in deployment.stack.of_type(SUBSCRIPTION_FILTER).items():
        function = next(references(properties.get("DestinationArn")), "")
        if function in deployment.functions:
            yield name, properties, function
