"""Docker Compose: one machine, replicas by hand."""

from __future__ import annotations

from typing import Any

from functions.server.facts import DEFAULT_PORT, GID, UID
from local.homes.facts import Choices
from local.homes.notes import Manifest, Noted


def compose(choices: Choices) -> list[Manifest]:
    """A Compose file with one service, whose health check is the image's own."""
    memory = f"{choices.size.memory_mb}m"
    service: dict[str, Any] = {
        "image": choices.image,
        "ports": Noted(
            [f"127.0.0.1:{DEFAULT_PORT}:{DEFAULT_PORT}"],
            "Only this machine. For others, put TLS in front of it.",
        ),
        "environment": dict(choices.environment),
        "user": f"{UID}:{GID}",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "cpus": choices.size.cpus,
        "mem_limit": memory,
        "memswap_limit": memory,
        "restart": "unless-stopped",
        "stop_grace_period": f"{choices.end_s(choices.environment)}s",
    }
    if not choices.environment:
        del service["environment"]
    if choices.size.gpus:
        device = {"driver": "nvidia", "count": choices.size.gpus, "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    return [{"services": {choices.name: service}}]
