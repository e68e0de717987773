"""The post-traffic hook: deletes old versions once a new one has all the traffic.

CloudFormation keeps every published version, and SnapStart bills the snapshot of each.
"""

import os
import time
from collections.abc import Collection
from functools import cache
from typing import Any

from coldframe.log_lines import plain_line


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Prunes and tells CodeDeploy. A failed deletion never undoes a good deployment."""
    started_s = time.monotonic()
    lambda_client, codedeploy = _clients()
    report: dict[str, Any]
    try:
        report = prune(lambda_client, os.environ["FUNCTION_NAME"], int(os.environ["KEPT_VERSIONS"]))
    except Exception as exc:  # without an answer CodeDeploy waits for an hour
        report = {"error": type(exc).__name__, "detail": str(exc)}
    print(plain_line("post-traffic", started_s, **report))
    if "DeploymentId" in event:
        codedeploy.put_lifecycle_event_hook_execution_status(
            deploymentId=event["DeploymentId"],
            lifecycleEventHookExecutionId=event["LifecycleEventHookExecutionId"],
            status="Succeeded",
        )
    return report


def prune(client: Any, function: str, newest: int) -> dict[str, list[str]]:
    """Deletes all versions except the `newest` latest and the ones that an alias uses."""
    versions = _versions(client, function)
    old = old_versions(versions, _in_use(client, function), newest)
    for version in old:
        client.delete_function(FunctionName=function, Qualifier=version)
    return {"deleted": old, "kept": sorted({*versions} - {*old}, key=int)}


def old_versions(versions: Collection[str], in_use: Collection[str], newest: int) -> list[str]:
    """Versions that are neither in use nor among the `newest` latest, oldest first."""
    return [version for version in sorted(versions, key=int)[:-newest] if version not in in_use]


def _versions(client: Any, function: str) -> list[str]:
    pages = client.get_paginator("list_versions_by_function").paginate(FunctionName=function)
    return [entry["Version"] for page in pages for entry in page["Versions"] if entry["Version"] != "$LATEST"]


def _in_use(client: Any, function: str) -> set[str]:
    pages = client.get_paginator("list_aliases").paginate(FunctionName=function)
    aliases = [alias for page in pages for alias in page["Aliases"]]
    weights = (alias.get("RoutingConfig", {}).get("AdditionalVersionWeights", {}) for alias in aliases)
    return {alias["FunctionVersion"] for alias in aliases} | {version for w in weights for version in w}


@cache
def _clients() -> tuple[Any, Any]:
    import boto3

    return boto3.client("lambda"), boto3.client("codedeploy")
