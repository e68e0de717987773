"""Rules of `coldframe check` about concurrency, aliases and who may call them."""

import re
import sys
from collections.abc import Iterator

from coldframe.capacity import limits as quotas
from coldframe_local.deploy.check.deployment import (
    DEPLOYMENT_GROUP,
    PERMISSION,
    SCALABLE_TARGET,
    Deployment,
    Finding,
    number_of,
    references,
    text_of,
    variables_of,
)

ALL_AT_ONCE = "CodeDeployDefault.LambdaAllAtOnce"


def concurrency_over_quota(deployment: Deployment) -> Iterator[Finding]:
    """More environments set aside than the account has to give."""
    left = deployment.account_concurrency - quotas.UNRESERVED.value
    reserved = {
        name: number_of(properties["ReservedConcurrentExecutions"], 0)
        for name, properties in deployment.functions.items()
        if "ReservedConcurrentExecutions" in properties
    }
    provisioned = {f: most for f, _, most in deployment.provisioned() if f not in reserved}
    total = sum(reserved.values()) + sum(provisioned.values())
    if (reserved or provisioned) and total > left:
        yield Finding(
            "ConcurrencyOverQuota",
            ", ".join((*reserved, *provisioned)),
            f"{total} environments are reserved or provisioned, expected at most {max(left, 0)}:"
            f" the account has {deployment.account_concurrency}, less {quotas.UNRESERVED}",
            "Lower ReservedConcurrency or ProvisionedConcurrencyMax, or ask AWS for more and say so"
            " with --account-concurrency",
        )


def provisioned_over_reserved(deployment: Deployment) -> Iterator[Finding]:
    """More environments provisioned, or kept warm, than the function may have."""
    for function, properties in deployment.functions.items():
        reserved = number_of(properties.get("ReservedConcurrentExecutions"), sys.maxsize)
        for _, alias, most in (entry for entry in deployment.provisioned() if entry[0] == function):
            if most > reserved:
                yield Finding(
                    "ProvisionedOverReserved",
                    alias,
                    f"up to {most} environments are provisioned, and {function} reserves {reserved}",
                    "Raise ReservedConcurrency, or lower ProvisionedConcurrencyMax",
                )
        for name, other in deployment.functions.items():
            pinged = variables_of(other)
            warm = number_of(pinged.get("WARM_ENVIRONMENTS"), 0)
            if {"Ref": function} in pinged.values() and warm > reserved:
                yield Finding(
                    "ProvisionedOverReserved",
                    name,
                    f"{warm} environments are kept warm, and {function} reserves {reserved}",
                    "Raise ReservedConcurrency, or lower WarmEnvironments",
                )


def warming_out_of_order(deployment: Deployment) -> Iterator[Finding]:
    """A warmer that predicts, whose guards exclude each other or ask for more than the function may have."""
    for name, properties in deployment.functions.items():
        settings = variables_of(properties)
        if settings.get("PREDICTION") != "on":
            continue
        most = number_of(settings.get("WARM_MAXIMUM"), sys.maxsize)
        for least, parameter in (("WARM_MINIMUM", "WarmMinimum"), ("WARM_GUARANTEED", "WarmGuaranteed")):
            if (minimum := number_of(settings.get(least), 0)) > most:
                yield Finding(
                    "WarmingOutOfOrder",
                    name,
                    f"{parameter} is {minimum}, and WarmMaximum {most}",
                    f"Raise WarmMaximum, or lower {parameter}",
                )
        for function, other in deployment.functions.items():
            reserved = number_of(other.get("ReservedConcurrentExecutions"), sys.maxsize)
            if {"Ref": function} in settings.values() and most > reserved:
                yield Finding(
                    "WarmingOutOfOrder",
                    name,
                    f"up to {most} environments are kept warm, and {function} reserves {reserved}",
                    "Raise ReservedConcurrency, or lower WarmMaximum",
                )


def provisioned_out_of_order(deployment: Deployment) -> Iterator[Finding]:
    """A minimum above its maximum, which Application Auto Scaling refuses."""
    for name, target in deployment.stack.of_type(SCALABLE_TARGET).items():
        actions = {
            a["ScheduledActionName"]: a["ScalableTargetAction"] for a in target.get("ScheduledActions", [])
        }
        for what, capacity in {"itself": target, **actions}.items():
            low = number_of(capacity.get("MinCapacity"), 0)
            high = number_of(capacity.get("MaxCapacity"), sys.maxsize)
            if low > high:
                yield Finding(
                    "ProvisionedOutOfOrder",
                    name if what == "itself" else f"{name}, {what}",
                    f"at least {low} environments and at most {high}",
                    "Raise ProvisionedConcurrencyMax",
                )


def provisioned_on_latest(deployment: Deployment) -> Iterator[Finding]:
    """Provisioned concurrency of no version, which does not exist."""
    for name, target in deployment.stack.of_type(SCALABLE_TARGET).items():
        resource = text_of(target["ResourceId"])
        if not re.search(r"function:[^:]+:[^:$]+$", resource.removesuffix('"}')):
            yield Finding(
                "ProvisionedOnLatest",
                name,
                f"ResourceId is {resource}, which names neither an alias nor a version",
                "Add `AutoPublishAlias: live` to the function and `:live` to ResourceId",
            )


def api_bypasses_alias(deployment: Deployment) -> Iterator[Finding]:
    """An API that calls $LATEST: what is provisioned or in snapshots is paid for and never reached."""
    for call in deployment.integrations:
        if call.alias is None:
            yield Finding(
                "ApiBypassesAlias",
                call.api,
                f"its integration calls {call.function} itself, so $LATEST",
                "Refer to the alias: !Ref PredictFunction.Alias",
            )


def provisioned_with_snapstart(deployment: Deployment) -> Iterator[Finding]:
    """Both at once."""
    for function, alias, _ in deployment.provisioned():
        if deployment.has_snapstart(function):
            yield Finding(
                "ProvisionedWithSnapStart",
                alias,
                f"{function} has SnapStart, which excludes provisioned concurrency",
                "Choose one: ColdStartMode Provisioned or SnapStart",
            )


def provisioned_with_weights(deployment: Deployment) -> Iterator[Finding]:
    """Traffic that is to be split on an alias with provisioned concurrency."""
    groups = deployment.stack.of_type(DEPLOYMENT_GROUP)
    for _, alias, _ in deployment.provisioned():
        properties = deployment.aliases[alias]
        policy = (
            deployment.stack.resources[alias].get("UpdatePolicy", {}).get("CodeDeployLambdaAliasUpdate", {})
        )
        group = groups.get(next(references(policy.get("DeploymentGroupName")), ""), {})
        shift = group.get("DeploymentConfigName", ALL_AT_ONCE)
        if "RoutingConfig" in properties or shift != ALL_AT_ONCE:
            cause = "RoutingConfig" if "RoutingConfig" in properties else shift
            yield Finding(
                "ProvisionedWithWeights",
                alias,
                f"{cause} gives an alias weights, which exclude provisioned concurrency",
                "Let deployments move all traffic at once: Type AllAtOnce",
            )


def missing_permission(deployment: Deployment) -> Iterator[Finding]:
    """An API that may not invoke what it calls: every request would be answered with 500."""
    allowed = {
        target
        for permission in deployment.stack.of_type(PERMISSION).values()
        if permission["Principal"] == "apigateway.amazonaws.com"
        for target in references(permission["FunctionName"])
    }
    for call in deployment.integrations:
        if (call.alias or call.function) not in allowed:
            yield Finding(
                "MissingPermission",
                call.api,
                f"no AWS::Lambda::Permission lets it invoke {call.alias or call.function}",
                "Give the function an HttpApi event with this ApiId, or a permission on the alias",
            )
