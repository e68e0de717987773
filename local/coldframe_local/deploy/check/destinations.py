"""Rules of `coldframe check` about where asynchronous events go that no function could handle."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from coldframe_local.deploy.check.deployment import ROLE, Deployment, Finding, Properties, references
from coldframe_local.emulator.template.syntax.ref_names import EVENT_INVOKE_CONFIG, QUEUE

_TOPIC = "AWS::SNS::Topic"
# What the function's role needs, by the type of destination.
# https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html, read 2026-11-21
_ACTIONS = {
    QUEUE: "sqs:SendMessage",
    _TOPIC: "sns:Publish",
    "AWS::S3::Bucket": "s3:PutObject",
    "AWS::Lambda::Function": "lambda:InvokeFunction",
    "AWS::Events::EventBus": "events:PutEvents",
}
_FIFO = {QUEUE: "FifoQueue", _TOPIC: "FifoTopic"}
_POLICIES = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy")
# Managed policies that are known to say nothing of destinations.
_LOGS_AND_TRACES = ("AWSLambdaBasicExecutionRole", "AWSXRayDaemonWriteAccess", "AWSXrayWriteOnlyAccess")


def destination_refused(deployment: Deployment) -> Iterator[Finding]:
    """A destination that is not an ARN, or that Lambda does not send to."""
    for name, _, destination, kind in _destinations(deployment):
        target = next(references(destination))
        if kind == QUEUE and "Ref" in destination:
            fix = f"Write !GetAtt {target}.Arn"
            yield Finding("DestinationRefused", name, f"!Ref {target} is the queue's URL, and no ARN", fix)
        elif deployment.stack.resources[target].get("Properties", {}).get(_FIFO.get(kind, "")):
            problem = f"{target} is first-in-first-out, which Lambda does not send to"
            yield Finding("DestinationRefused", name, problem, f"Take {_FIFO[kind]} out, or name another")


def missing_destination_permission(deployment: Deployment) -> Iterator[Finding]:
    """A function that may not send to its destination: the deployment fails at this configuration."""
    for name, function, destination, kind in _destinations(deployment):
        target = next(references(destination))
        role = next(references(deployment.functions[function].get("Role")), None)
        if role in deployment.stack.of_type(ROLE) and not _may(deployment, role, _ACTIONS[kind], target):
            yield Finding(
                "MissingDestinationPermission",
                name,
                f"{role}, the role of {function}, may not {_ACTIONS[kind]} to {target}",
                f"Allow it in Policies of {role}, for this resource alone",
            )


def _destinations(deployment: Deployment) -> Iterator[tuple[str, str, dict[str, Any], str]]:
    """(configuration, function, destination, its type) of each destination that the stack makes itself."""
    for name, properties in deployment.stack.of_type(EVENT_INVOKE_CONFIG).items():
        function = next(references(properties.get("FunctionName")), "")
        for each in properties.get("DestinationConfig", {}).values():
            destination = each.get("Destination")
            target = deployment.stack.resources.get(next(references(destination), ""), {})
            if function in deployment.functions and target.get("Type") in _ACTIONS:
                yield name, function, destination, target["Type"]


def _may(deployment: Deployment, role: str, action: str, target: str) -> bool:
    """Whether a role may do something with a resource; yes, where a policy of an account may say so."""
    properties = deployment.stack.of_type(ROLE)[role]
    managed = [
        arn for arn in properties.get("ManagedPolicyArns", []) if not str(arn).endswith(_LOGS_AND_TRACES)
    ]
    statements = [s for policy in _policies(deployment, role) for s in _as_list(policy.get("Statement", []))]
    return bool(managed) or any(_allows(statement, action, target) for statement in statements)


def _policies(deployment: Deployment, role: str) -> Iterator[Properties]:
    """Documents of a role's policies: its own, and those of the stack that name it."""
    for policy in deployment.stack.of_type(ROLE)[role].get("Policies", []):
        yield policy["PolicyDocument"]
    for kind in _POLICIES:
        for policy in deployment.stack.of_type(kind).values():
            if role in references([policy.get("Roles"), policy.get("RoleName")]):
                yield policy["PolicyDocument"]


def _allows(statement: Properties, action: str, target: str) -> bool:
    """Whether a statement names both; a resource in plain text may be the target, as an account knows it."""
    actions, resources = _as_list(statement.get("Action")), _as_list(statement.get("Resource"))
    return (
        statement.get("Effect") == "Allow"
        and any(fnmatchcase(action.lower(), str(pattern).lower()) for pattern in actions)
        and (target in references(resources) or any(isinstance(each, str) for each in resources))
    )


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
