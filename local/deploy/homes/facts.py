"""Settings that the operator of a platform chooses, beside the server's own facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coldframe.server.settings import load_server_settings
from coldframe.setting_facts import PREFIX

NOTICE_S = 5
"""Time in which requests still reach a replica that has to end, until every node knows it."""
NOTICE = f"{PREFIX}DRAIN_NOTICE_S"
TOKENS, TOKENS_FILE, ALLOW_ANYONE = f"{PREFIX}TOKENS", f"{PREFIX}TOKENS_FILE", f"{PREFIX}ALLOW_ANYONE"
TOKENS_KEY = "tokens"
"""Name of the file with the tokens, in a home that mounts it."""
MARGIN_S = 5
"""Between the end of the drain and the kill: the process still has to exit."""
START_S = 120
"""A start that takes longer has failed; a busy machine took seven seconds. On a GPU, CUDA is loaded too."""
GPU_START_S = 180


@dataclass(frozen=True)
class Size:
    """Resources of one replica. cpus: virtual processors. memory_mb: units of 2²⁰ bytes. gpus: whole GPUs."""

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
    """Choices of a platform's operator. environment: variables of the server, by name."""

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
    def brings_tokens(self) -> bool:
        """Whether the home gives the server its tokens: no setting says who may call."""
        return not any(self.environment.get(name) for name in (TOKENS, TOKENS_FILE, ALLOW_ANYONE))

    @property
    def secret(self) -> str:
        """Name of the secret with the tokens."""
        return f"{self.name}-tokens"

    @property
    def noticed(self) -> dict[str, str]:
        """Environment of a server that keeps answering for NOTICE_S seconds after SIGTERM."""
        return {NOTICE: str(NOTICE_S), **self.environment}

    def end_s(self, environment: Mapping[str, str]) -> int:
        """From SIGTERM to the kill, for a server in this environment."""
        settings = load_server_settings(environment)
        return settings.drain_notice_s + settings.drain_grace_s + MARGIN_S

    @property
    def at_once(self) -> int:
        """Requests that one server works on, or has waiting for a pass."""
        return load_server_settings(self.environment).request_threads
