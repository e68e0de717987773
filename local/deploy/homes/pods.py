"""The container as Kubernetes describes it: the part that Deployment, Knative and KServe share."""

from __future__ import annotations

from typing import Any

from coldframe.server.facts import DEFAULT_PORT, GID, LIVE, METRICS, READY, UID
from local.deploy.homes.facts import TOKENS_FILE, TOKENS_KEY, Choices, Size
from local.deploy.homes.notes import Manifest, Noted

GPU_RESOURCE = "nvidia.com/gpu"
_SECRETS = "/run/secrets/coldframe"
_LIVE_FAILURES, _LIVE_PERIOD_S = 3, 10


def labels(choices: Choices) -> Manifest:
    """Labels that all objects of the platform carry.

    https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/, read 2026-11-22.
    """
    return {"app.kubernetes.io/name": "coldframe", "app.kubernetes.io/instance": choices.name}


def scraped() -> Manifest:
    """Annotations by which many a Prometheus finds the metrics of a pod."""
    prefix = "prometheus.io"
    return {
        f"{prefix}/scrape": "true",
        f"{prefix}/port": str(DEFAULT_PORT),
        f"{prefix}/path": Noted(
            METRICS, "Where callers need a token, Prometheus does: authorization.credentials_file."
        ),
    }


def container(choices: Choices, name: str, port_name: str, environment: Manifest) -> dict[str, Any]:
    """One server, without probes. port_name: what the home calls a port of HTTP/1.1."""
    described: dict[str, Any] = {
        "name": name,
        "image": choices.image,
        "ports": [{"name": port_name, "containerPort": DEFAULT_PORT}],
    }
    if choices.brings_tokens:
        environment = {**environment, TOKENS_FILE: f"{_SECRETS}/{TOKENS_KEY}"}
        described["volumeMounts"] = [{"name": TOKENS_KEY, "mountPath": _SECRETS, "readOnly": True}]
    if environment:
        described["env"] = [{"name": key, "value": value} for key, value in environment.items()]
    described["resources"] = resources(choices.size)
    described["securityContext"] = security()
    return described


def volumes(choices: Choices) -> Manifest:
    """The secret that the container mounts. As a folder: a single mounted file would never be replaced."""
    if not choices.brings_tokens:
        return {}
    secret = {"name": TOKENS_KEY, "secret": {"secretName": choices.secret}}
    return {
        "volumes": Noted(
            [secret],
            f"Who may call: kubectl create secret generic {choices.secret} --from-file={TOKENS_KEY}=FILE,\n"
            "where each line of FILE is NAME:TOKEN. The server reads a changed secret by itself.",
        )
    }


def resources(size: Size) -> Manifest:
    """Requests equal to limits."""
    requests: dict[str, Any] = {"cpu": cpu_quantity(size.cpus), "memory": f"{size.memory_mb}Mi"}
    limits = requests | ({GPU_RESOURCE: str(size.gpus)} if size.gpus else {})
    return {
        "requests": requests,
        "limits": Noted(
            limits,
            "Equal to the requests: the server starts a thread for each processor of its limit, and a pod\n"
            "that holds no more than it asked for is evicted last.",
        ),
    }


def cpu_quantity(cpus: float) -> str:
    """Whole processors as such, others in thousandths."""
    return str(int(cpus)) if cpus == int(cpus) else f"{round(cpus * 1000)}m"


def security() -> Manifest:
    """Settings that the Pod Security Standard `restricted` requires, and a read-only root file system.

    https://kubernetes.io/docs/concepts/security/pod-security-standards/, read 2026-11-22.
    """
    return {
        "runAsNonRoot": True,
        "runAsUser": UID,
        "runAsGroup": GID,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def readiness() -> Manifest:
    """True once all golden vectors have passed; no longer true from SIGTERM on."""
    return {"httpGet": {"path": READY, "port": DEFAULT_PORT}}


def liveness() -> Manifest:
    """Whether the process answers at all, from its first moment to its last."""
    return {
        "httpGet": {"path": LIVE, "port": DEFAULT_PORT},
        "periodSeconds": _LIVE_PERIOD_S,
        "timeoutSeconds": 5,
        "failureThreshold": _LIVE_FAILURES,
    }


def startup(choices: Choices) -> Manifest:
    """Asks every second, so that a replica serves as soon as it can."""
    return {
        "httpGet": {"path": READY, "port": DEFAULT_PORT},
        "periodSeconds": 1,
        "failureThreshold": choices.start_s,
    }


def tolerations() -> list[Manifest]:
    """Nodes with GPUs are commonly tainted with the name of the resource."""
    return [{"key": GPU_RESOURCE, "operator": "Exists", "effect": "NoSchedule"}]
