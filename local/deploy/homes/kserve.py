"""KServe: the server as a predictor of its own, for the Open Inference Protocol."""

from __future__ import annotations

from typing import Any

from local.deploy.homes.facts import Choices
from local.deploy.homes.knative import BUSY, MOST_CONCURRENCY, allowed_tolerations, probed, timeout_s
from local.deploy.homes.notes import Manifest, Noted
from local.deploy.homes.pods import labels, volumes

# The names that KServe looks for.
_CONTAINER = "kserve-container"
_PROTOCOL = {"PROTOCOL": "v2"}


def kserve(choices: Choices) -> list[Manifest]:
    """An InferenceService.

    Of KServe's modes only `Knative` starts a replica from zero for a request.
    https://kserve.github.io/website/docs/admin-guide/kubernetes-deployment, read 2026-11-22.
    """
    predictor: dict[str, Any] = {
        "minReplicas": choices.replicas.least,
        "maxReplicas": choices.replicas.most,
        "scaleMetric": "concurrency",
        "scaleTarget": BUSY,
        "containerConcurrency": min(choices.at_once, MOST_CONCURRENCY),
        "timeout": timeout_s(choices),
        "automountServiceAccountToken": False,
        "containers": [probed(choices, _CONTAINER, {**_PROTOCOL, **choices.environment})],
        **volumes(choices),
    }
    if choices.size.gpus:
        predictor["tolerations"] = allowed_tolerations()
    mode = Noted(
        {"serving.kserve.io/deploymentMode": "Knative"},
        "Before KServe 0.16 the mode was called Serverless.",
    )
    return [
        {
            "apiVersion": "serving.kserve.io/v1beta1",
            "kind": "InferenceService",
            "metadata": {"name": choices.name, "labels": labels(choices), "annotations": mode},
            "spec": {"predictor": predictor},
        }
    ]
