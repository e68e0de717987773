"""What every home is told: what the server knows of itself, and what its operator chose."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

# The server's own facts.
DEFAULT_PORT = 8080
LIVE, READY, METRICS = "/v2/health/live", "/v2/health/ready", "/metrics"
UID, GID = 993, 990
HEALTH_COMMAND = ("python3", "-m", "functions.server.health")
DRAIN_GRACE_S = 25
REQUEST_THREADS = 128

NOTICE_S = 5
"""So long requests still reach a replica that is asked to end: until every node has heard of it."""
NOTICE, GRACE = "COLDFRAME_DRAIN_NOTICE_S", "COLDFRAME_DRAIN_GRACE_S"
MARGIN_S = 5
"""Between the end of the drain and the kill: the process still has to exit."""
START_S = 60
"""A start that takes longer has failed. On a GPU, CUDA is loaded too."""
GPU_START_S = 180


@dataclass(frozen=True)
class Size:
    """Of one replica. cpus: virtual processors. memory_mb: in units of 2²⁰ bytes. gpus: whole ones."""

    cpus: float
    memory_mb: int
    gpus: int = 0


@dataclass(frozen=True)
class Replicas:
    """How many run at the least and at the most."""

    least: int
    most: int


@dataclass(frozen=True)
class Choices:
    """What the operator of a home chose. environment: of the server, by name."""

    name: str
    image: str
    size: Size
    replicas: Replicas
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def start_s(self) -> int:
        """How long a start may take."""
        return GPU_START_S if self.size.gpus else START_S

    @property
    def noticed(self) -> dict[str, str]:
        """The environment of a server that goes on answering for NOTICE_S seconds after SIGTERM."""
        return {NOTICE: str(NOTICE_S), **self.environment}

    def end_s(self, environment: Mapping[str, str]) -> int:
        """From SIGTERM to the kill, for a server in this environment."""
        grace_s = float(environment.get(GRACE, DRAIN_GRACE_S))
        return math.ceil(float(environment.get(NOTICE, 0)) + grace_s + MARGIN_S)
