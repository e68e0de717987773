"""Plain Kubernetes: a Deployment, its Service, what scales it and what protects it."""

from __future__ import annotations

from typing import Any

from coldframe.errors import ColdframeError
from coldframe.server.facts import DEFAULT_PORT
from local.deploy.homes import pods
from local.deploy.homes.facts import MARGIN_S, NOTICE, Choices
from local.deploy.homes.notes import Manifest, Noted

_BUSY_PERCENT = 70
_DNS, _HTTPS = 53, 443
_OF_AWS = ("COLDFRAME_CACHE_TABLE", "COLDFRAME_JOBS_TABLE")
"""Settings with which the server asks AWS's services."""


class CannotScale(ColdframeError):
    """The home has no measure to scale by."""


def kubernetes(choices: Choices) -> list[Manifest]:
    """All objects, in the order in which they are created. Raises CannotScale."""
    scales = choices.replicas.most > choices.replicas.least
    if scales and choices.size.gpus:
        raise CannotScale(
            f"Found {choices.replicas.least} to {choices.replicas.most} replicas with a GPU. A"
            " HorizontalPodAutoscaler watches the processor, which says nothing of a GPU. Give --min and"
            " --max the same number, or take `knative` or `kserve`, which scale by requests."
        )
    objects = [_service(choices), _deployment(choices, scales)]
    if scales:
        objects.append(_autoscaler(choices))
    return [*objects, _disruption_budget(choices), _network_policy(choices)]


def _metadata(choices: Choices) -> Manifest:
    return {"name": choices.name, "labels": pods.labels(choices)}


def _service(choices: Choices) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(choices),
        "spec": {
            "selector": pods.labels(choices),
            "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
        },
    }


def _deployment(choices: Choices, scales: bool) -> Manifest:
    spec: dict[str, Any] = {} if scales else {"replicas": choices.replicas.least}
    spec |= {
        "selector": {"matchLabels": pods.labels(choices)},
        "strategy": _strategy(choices),
        "template": {
            "metadata": {"labels": pods.labels(choices), "annotations": pods.scraped()},
            "spec": _pod(choices),
        },
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _metadata(choices), "spec": spec}


def _strategy(choices: Choices) -> Manifest:
    if choices.size.gpus and choices.replicas.least > 1:
        rolling: Manifest = {
            "maxSurge": Noted(0, "A new replica waits for the GPU of an old one."),
            "maxUnavailable": 1,
        }
    else:
        rolling = {"maxSurge": 1, "maxUnavailable": 0}
    return {"type": "RollingUpdate", "rollingUpdate": rolling}


def _pod(choices: Choices) -> Manifest:
    server = pods.container(choices, "server", "http", choices.noticed)
    server |= {
        "startupProbe": pods.startup(choices),
        "readinessProbe": {**pods.readiness(), "periodSeconds": 2, "failureThreshold": 2},
        "livenessProbe": pods.liveness(),
    }
    pod: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": Noted(
            choices.end_s(choices.noticed),
            f"{NOTICE}, in which nodes still send requests; the drain; {MARGIN_S} s to exit.",
        ),
        "containers": [server],
        **pods.volumes(choices),
        "topologySpreadConstraints": [
            _spread(choices, "topology.kubernetes.io/zone"),
            _spread(choices, "kubernetes.io/hostname"),
        ],
    }
    if choices.size.gpus:
        pod["tolerations"] = pods.tolerations()
    return pod


def _spread(choices: Choices, key: str) -> Manifest:
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": pods.labels(choices)},
        "matchLabelKeys": ["pod-template-hash"],
    }


def _autoscaler(choices: Choices) -> Manifest:
    busy = {
        "type": "Resource",
        "resource": {
            "name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": _BUSY_PERCENT},
        },
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": _metadata(choices),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": choices.name},
            "minReplicas": choices.replicas.least,
            "maxReplicas": choices.replicas.most,
            "metrics": [busy],
        },
    }


def _disruption_budget(choices: Choices) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(choices),
        "spec": {
            "maxUnavailable": Noted(1, "With a single replica, too: a node can always be drained."),
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": pods.labels(choices)},
        },
    }


def _network_policy(choices: Choices) -> Manifest:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _metadata(choices),
        "spec": {
            "podSelector": {"matchLabels": pods.labels(choices)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [{"port": DEFAULT_PORT}]}],
            "egress": _egress(choices),
        },
    }


def _egress(choices: Choices) -> Noted:
    if not any(choices.environment.get(name) for name in _OF_AWS):
        return Noted([], "The server calls nobody: no text can leave.")
    names = [{"protocol": protocol, "port": _DNS} for protocol in ("UDP", "TCP")]
    return Noted(
        [{"ports": [*names, {"protocol": "TCP", "port": _HTTPS}]}],
        "Names, and HTTPS for the shared cache and jobs. Narrow it to the addresses of your VPC endpoints.",
    )
