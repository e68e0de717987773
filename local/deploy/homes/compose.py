"""Docker Compose: one machine, replicas by hand."""

from __future__ import annotations

from typing import Any

from coldframe.server.facts import DEFAULT_PORT, GID, UID
from local.deploy.homes.facts import TOKENS_FILE, TOKENS_KEY, Choices
from local.deploy.homes.notes import Manifest, Noted


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
    described: dict[str, Any] = {"services": {choices.name: service}}
    if choices.brings_tokens:
        service["environment"][TOKENS_FILE] = f"/run/secrets/{TOKENS_KEY}"
        service["secrets"] = [TOKENS_KEY]
        described["secrets"] = Noted(
            {TOKENS_KEY: {"file": f"./{choices.secret}"}},
            f"Who may call: each line is NAME:TOKEN, and user {UID} has to be able to read it. Write\n"
            "into the file to replace a token: a container does not see another file of its name.",
        )
    if not service["environment"]:
        del service["environment"]
    if choices.size.gpus:
        device = {"driver": "nvidia", "count": choices.size.gpus, "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    return [described]
