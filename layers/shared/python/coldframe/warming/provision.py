"""Provisioned concurrency as the warmer reads, sets and releases it, by calls of AWS."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from coldframe.warming.settings import Predicting


def provisioned_level(client: Any, settings: Predicting) -> int:
    """Provisioned concurrency last requested from AWS. client: boto3's for Lambda."""
    try:
        answer = client.get_provisioned_concurrency_config(
            FunctionName=settings.function, Qualifier=settings.alias
        )
    except client.exceptions.ProvisionedConcurrencyConfigNotFoundException:
        return 0
    return int(answer["RequestedProvisionedConcurrentExecutions"])


def schedule_level(client: Any, settings: Predicting, count: int, now: datetime) -> None:
    """Sets the level by a scheduled action for the next minute; target tracking would never reach zero.

    https://docs.aws.amazon.com/autoscaling/application/userguide/scheduled-scaling-additional-cli-commands.html,
    read 2026-11-22
    """
    client.put_scheduled_action(
        ServiceNamespace="lambda",
        ScheduledActionName="warmer",
        ResourceId=f"function:{settings.function}:{settings.alias}",
        ScalableDimension="lambda:function:ProvisionedConcurrency",
        Schedule=f"at({now + timedelta(minutes=1):%Y-%m-%dT%H:%M:%S})",
        ScalableTargetAction={"MinCapacity": count, "MaxCapacity": count},
    )


def release(client: Any, settings: Predicting) -> None:
    """Ends provisioned concurrency that an earlier setting has left: removes its scalable target."""
    client.delete_provisioned_concurrency_config(FunctionName=settings.function, Qualifier=settings.alias)
