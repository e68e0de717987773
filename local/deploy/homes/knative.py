"""Knative Serving: from zero to many replicas and back, by requests."""

from __future__ import annotations

from typing import Any

from local.deploy.homes import pods
from local.deploy.homes.facts import Choices
from local.deploy.homes.notes import Manifest, Noted

MOST_CONCURRENCY = 1000
"""https://knative.dev/docs/serving/configuration/config-defaults/, read 2026-11-22."""
_TIMEOUT_S, _MOST_TIMEOUT_S = 60, 600
BUSY = Noted(
    16,
    "Requests at once in one replica, on average, before another one is started. Try your own texts: fewer\n"
    "when they are long or callers are impatient.",
)
_SCALING = "autoscaling.knative.dev"


def knative(choices: Choices) -> list[Manifest]:
    """A Service.

    Knative refuses a Service that sets PORT, a grace period or a lifecycle of its own.
    https://github.com/knative/serving/blob/main/pkg/apis/serving/fieldmask.go, read 2026-11-22.
    """
    spec: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "containerConcurrency": Noted(
            min(choices.at_once, MOST_CONCURRENCY),
            "Largest number of requests at once at one replica; further ones wait in front of it.",
        ),
        "timeoutSeconds": timeout_s(choices),
        "containers": [probed(choices, "server", choices.environment)],
        **pods.volumes(choices),
    }
    if choices.size.gpus:
        spec["tolerations"] = allowed_tolerations()
    template = {"metadata": {"annotations": _scaling(choices)}, "spec": spec}
    return [
        {
            "apiVersion": "serving.knative.dev/v1",
            "kind": "Service",
            "metadata": {"name": choices.name, "labels": pods.labels(choices)},
            "spec": {"template": template},
        }
    ]


def timeout_s(choices: Choices) -> int:
    """Longest time of one request; also the grace period of a replica that ends."""
    return min(max(_TIMEOUT_S, choices.end_s(choices.environment)), _MOST_TIMEOUT_S)


def probed(choices: Choices, name: str, environment: Manifest) -> Manifest:
    """The container with the probes that Knative knows; it counts a replica as ready as soon as it is."""
    return {
        **pods.container(choices, name, "http1", environment),
        "readinessProbe": Noted(
            pods.readiness(),
            "Without a period: Knative asks many times a second while a replica starts.",
        ),
        "livenessProbe": pods.liveness(),
    }


def allowed_tolerations() -> Noted:
    """Those of a pod with a GPU; Knative refuses tolerations unless its feature flag is set."""
    return Noted(
        pods.tolerations(),
        "The cluster's config-features has to allow it: kubernetes.podspec-tolerations: enabled",
    )


def _scaling(choices: Choices) -> Manifest:
    return {
        f"{_SCALING}/min-scale": str(choices.replicas.least),
        f"{_SCALING}/max-scale": str(choices.replicas.most),
        f"{_SCALING}/metric": "concurrency",
        f"{_SCALING}/target": Noted(str(BUSY.value), BUSY.why),
    }
