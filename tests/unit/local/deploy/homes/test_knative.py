"""Knative, by the schema of the pod that it makes and by the fields that it takes.

No package brings Knative's schemas, so the fields are those of its code, read 2026-11-22:
https://github.com/knative/serving/blob/main/pkg/apis/serving/fieldmask.go and k8s_validation.go. Fields
behind a feature flag, whose default is off in config/core/configmaps/features.yaml, are named apart.
"""

from typing import Any

import kubernetes_validate
import pytest
from hypothesis import given

from local.deploy.homes.facts import Choices, Replicas
from local.deploy.homes.knative import knative
from tests.unit.local.deploy.homes.choosing import FEW, USUAL, WITH_GPU, choices, read

OF_REVISION = {"containerConcurrency", "timeoutSeconds"}
OF_POD = {
    "automountServiceAccountToken", "containers", "enableServiceLinks", "imagePullSecrets",
    "serviceAccountName", "volumes",
}  # fmt: skip
BEHIND_A_FLAG = {"tolerations"}
OF_CONTAINER = {
    "args", "command", "env", "envFrom", "image", "imagePullPolicy", "livenessProbe", "name", "ports",
    "readinessProbe", "resources", "securityContext", "volumeMounts", "workingDir",
}  # fmt: skip
RESERVED = {"PORT", "K_SERVICE", "K_CONFIGURATION", "K_REVISION"}
MOST_CONCURRENCY = 1000
"""container-concurrency-max-limit, https://knative.dev/docs/serving/configuration/config-defaults/, read
2026-11-22."""


def revision_of(chosen: Choices) -> Any:
    """The template of the Service."""
    [found] = read(knative(chosen))
    return found["spec"]["template"]


def check_revision(spec: dict[str, Any], extensions: set[str]) -> None:
    """Whether Knative takes this pod. extensions: fields that are not the pod's."""
    assert set(spec) - extensions - BEHIND_A_FLAG <= OF_POD
    pod = {field: value for field, value in spec.items() if field not in extensions}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": pod}
    kubernetes_validate.validate(manifest, "1.37", strict=True)
    [container] = spec["containers"]
    assert set(container) <= OF_CONTAINER
    assert {found["name"] for found in container.get("env", [])}.isdisjoint(RESERVED)
    [port] = container["ports"]
    assert port["name"] == "http1"
    assert 0 < spec["containerConcurrency"] <= MOST_CONCURRENCY


@FEW
@given(choices)
def test_every_service_is_valid(chosen: Choices) -> None:
    """Knative's own fields and the pod's are those that Knative takes; the pod is one of Kubernetes."""
    [found] = read(knative(chosen))
    assert (found["apiVersion"], found["kind"]) == ("serving.knative.dev/v1", "Service")
    assert set(found["spec"]) == {"template"}
    check_revision(found["spec"]["template"]["spec"], OF_REVISION)


def test_annotations_are_texts_that_knative_reads() -> None:
    """From zero to ten replicas, one more for each sixteen requests at once."""
    chosen = Choices("a", "b", USUAL.size, Replicas(0, 10))
    prefix = "autoscaling.knative.dev/"
    annotations = revision_of(chosen)["metadata"]["annotations"]
    assert {name: annotations[prefix + name] for name in ("min-scale", "max-scale", "metric")} == {
        "min-scale": "0",
        "max-scale": "10",
        "metric": "concurrency",
    }
    assert int(annotations[prefix + "target"]) <= revision_of(chosen)["spec"]["containerConcurrency"]


def test_readiness_has_no_period() -> None:
    """With a period, Knative would ask once in that time, and a start from zero would wait for it."""
    [container] = revision_of(USUAL)["spec"]["containers"]
    assert "periodSeconds" not in container["readinessProbe"]


@pytest.mark.parametrize(("grace_s", "expected_s"), [("25", 60), ("100", 105), ("599", 600)])
def test_grace_of_knative_is_the_timeout(grace_s: str, expected_s: int) -> None:
    """A longer drain needs a longer timeout, up to the longest that Knative takes by default."""
    chosen = Choices("a", "b", USUAL.size, USUAL.replicas, {"COLDFRAME_DRAIN_GRACE_S": grace_s})
    assert revision_of(chosen)["spec"]["timeoutSeconds"] == expected_s


@pytest.mark.parametrize("chosen", [USUAL, WITH_GPU], ids=["cpu", "gpu"])
def test_flag_is_needed_for_a_gpu_only(chosen: Choices) -> None:
    """Without a GPU no feature of the cluster has to be switched on."""
    assert ("tolerations" in revision_of(chosen)["spec"]) == bool(chosen.size.gpus)
