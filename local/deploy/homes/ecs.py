"""Amazon ECS: a task definition, for Fargate or, with a GPU, for EC2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coldframe.errors import ColdframeError
from coldframe.server.facts import DEFAULT_PORT, GID, HEALTH_COMMAND, UID
from local.deploy.homes.facts import TOKENS, TOKENS_KEY, Choices, Size
from local.deploy.homes.notes import Manifest

_UNITS = 1024
"""CPU units of one virtual processor; megabytes of a gigabyte."""
# CPU units, and the gigabytes that each can have: the least, the most, and the step between.
# https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-cpu-memory-error.html, read 2026-11-22
_SIZES = (
    (256, (0.5, 1, 2)),
    (512, range(1, 5)),
    (1024, range(2, 9)),
    (2048, range(4, 17)),
    (4096, range(8, 31)),
    (8192, range(16, 61, 4)),
    (16384, range(32, 121, 8)),
)
_MOST_STOP_S = 120
_ARCHITECTURES = {"x86_64": "X86_64", "arm64": "ARM64"}


class NoSuchSize(ColdframeError):
    """Fargate sells no task that large."""


@dataclass(frozen=True)
class OnEcs:
    """Settings that only ECS needs.

    execution_role: pulls the image, writes the log and reads the tokens. task_role: of the server itself.
    region: of the log.
    """

    execution_role: str
    architecture: str = "arm64"
    region: str = "us-east-1"
    task_role: str | None = None


def ecs(choices: Choices, on: OnEcs) -> Manifest:
    """Input of `aws ecs register-task-definition --cli-input-json`. Raises NoSuchSize."""
    cpu, memory_mb = _asked(choices.size) if choices.size.gpus else fargate_size(choices.size)
    definition: dict[str, Any] = {
        "family": choices.name,
        "requiresCompatibilities": ["EC2" if choices.size.gpus else "FARGATE"],
        "networkMode": "awsvpc",
        "runtimePlatform": {
            "cpuArchitecture": _ARCHITECTURES[on.architecture],
            "operatingSystemFamily": "LINUX",
        },
        "cpu": str(cpu),
        "memory": str(memory_mb),
        "executionRoleArn": on.execution_role,
        "containerDefinitions": [_container(choices, on)],
    }
    return definition | ({"taskRoleArn": on.task_role} if on.task_role else {})


def _asked(size: Size) -> tuple[int, int]:
    """CPU units and megabytes as they are: what EC2 does, whose instances are of any size."""
    return round(size.cpus * _UNITS), size.memory_mb


def fargate_size(size: Size) -> tuple[int, int]:
    """CPU units and megabytes of the smallest task that Fargate sells and that holds `size`."""
    least_units, _ = _asked(size)
    for units, sold_gb in _SIZES:
        enough = [gb for gb in sold_gb if gb * _UNITS >= size.memory_mb]
        if units >= least_units and enough:
            return units, int(enough[0] * _UNITS)
    most, sold_gb = _SIZES[-1]
    raise NoSuchSize(
        f"Found {size.cpus} vCPU with {size.memory_mb} MB, expected at most {most // _UNITS} vCPU with"
        f" {sold_gb[-1]} GB. Name less with --cpu or --memory-mb, and run more tasks."
    )


def _container(choices: Choices, on: OnEcs) -> Manifest:
    container: dict[str, Any] = {
        "name": "server",
        "image": choices.image,
        "essential": True,
        "portMappings": [
            {"containerPort": DEFAULT_PORT, "protocol": "tcp", "name": "http", "appProtocol": "http"}
        ],
        "environment": [{"name": key, "value": value} for key, value in choices.noticed.items()],
        "user": f"{UID}:{GID}",
        "readonlyRootFilesystem": True,
        "linuxParameters": {"capabilities": {"drop": ["ALL"]}},
        "stopTimeout": min(choices.end_s(choices.noticed), _MOST_STOP_S),
        "healthCheck": {
            "command": ["CMD", *HEALTH_COMMAND],
            "interval": 10,
            "timeout": 5,
            "retries": 3,
            "startPeriod": choices.start_s,
        },
        "logConfiguration": {
            "logDriver": "awslogs",
            "options": {
                "awslogs-group": f"/ecs/{choices.name}",
                "awslogs-region": on.region,
                "awslogs-stream-prefix": "server",
            },
        },
    }
    if choices.brings_tokens:
        # The name of an SSM parameter of the same region, which may be a SecureString; read as a task starts.
        # https://docs.aws.amazon.com/AmazonECS/latest/developerguide/secrets-envvar-ssm-paramstore.html
        container["secrets"] = [{"name": TOKENS, "valueFrom": f"/{choices.name}/{TOKENS_KEY}"}]
    if choices.size.gpus:
        container["resourceRequirements"] = [{"type": "GPU", "value": str(choices.size.gpus)}]
    return container
