"""Plain Kubernetes, by its published schemas."""

from dataclasses import replace
from typing import Any

import kubernetes_validate
import pytest
from hypothesis import given

from local.deploy.homes.facts import MARGIN_S, NOTICE, NOTICE_S, Choices, Replicas
from local.deploy.homes.kubernetes import CannotScale, kubernetes
from tests.unit.local.deploy.homes.choosing import ANYONE, FEW, USUAL, WITH_CACHE, WITH_GPU, read, scalable

# The oldest that clouds still sell at the end of 2026, and the newest.
VERSIONS = ("1.33", "1.37")


def by_kind(chosen: Choices) -> dict[str, Any]:
    """Each object of the home."""
    return {found["kind"]: found for found in read(kubernetes(chosen))}


def pod_of(chosen: Choices) -> Any:
    """The pod of the Deployment."""
    return by_kind(chosen)["Deployment"]["spec"]["template"]["spec"]


@FEW
@given(scalable)
def test_every_object_is_valid(chosen: Choices) -> None:
    """The schemas of Kubernetes know every field, and take every value."""
    for found in read(kubernetes(chosen)):
        for version in VERSIONS:
            kubernetes_validate.validate(found, version, strict=True)


def test_schema_refuses_what_kubernetes_does_not_know() -> None:
    """A misspelt field is not a valid manifest: the test above can fail."""
    deployment = by_kind(USUAL)["Deployment"]
    deployment["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, VERSIONS[-1], strict=True)


@FEW
@given(scalable)
def test_selectors_find_the_pods(chosen: Choices) -> None:
    """Service, Deployment, budget and policy mean the labels that the pods have."""
    found = by_kind(chosen)
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert found["Service"]["spec"]["selector"] == labels
    assert found["Deployment"]["spec"]["selector"] == {"matchLabels": labels}
    assert found["PodDisruptionBudget"]["spec"]["selector"] == {"matchLabels": labels}
    assert found["NetworkPolicy"]["spec"]["podSelector"] == {"matchLabels": labels}


def test_scaler_alone_says_how_many() -> None:
    """Where a HorizontalPodAutoscaler scales, the Deployment names no number that would undo it."""
    found = by_kind(USUAL)
    assert "replicas" not in found["Deployment"]["spec"]
    scaler = found["HorizontalPodAutoscaler"]["spec"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 10)
    assert scaler["scaleTargetRef"]["name"] == found["Deployment"]["metadata"]["name"]


def test_equal_numbers_need_no_scaler() -> None:
    """--min equal to --max: so many replicas, and nothing that scales."""
    found = by_kind(WITH_GPU)
    assert found["Deployment"]["spec"]["replicas"] == 2
    assert "HorizontalPodAutoscaler" not in found


def test_gpus_are_not_scaled_by_the_processor() -> None:
    """A GPU's load cannot be seen in the processor's, and the error names what can scale it."""
    chosen = Choices("on-gpu", "coldframe:gpu", WITH_GPU.size, Replicas(1, 3))
    with pytest.raises(CannotScale, match="knative"):
        kubernetes(chosen)


def test_gpu_is_a_limit_with_its_toleration() -> None:
    """The pod asks for the GPU, and may run on tainted nodes."""
    pod = pod_of(WITH_GPU)
    assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert [found["key"] for found in pod["tolerations"]] == ["nvidia.com/gpu"]


def test_pod_may_do_nothing() -> None:
    """The pod passes the Pod Security Standard `restricted`, on a root that nobody can write to."""
    pod = pod_of(USUAL)
    security = pod["containers"][0]["securityContext"]
    assert security["runAsNonRoot"] and security["readOnlyRootFilesystem"]
    assert not security["allowPrivilegeEscalation"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert [set(volume) for volume in pod["volumes"]] == [{"name", "secret"}]
    assert all(mount["readOnly"] for mount in pod["containers"][0]["volumeMounts"])


def test_tokens_are_a_secret() -> None:
    """The pod mounts the secret as a folder, where the server looks; where anyone may call there is none."""
    pod = pod_of(USUAL)
    [container] = pod["containers"]
    [mount] = container["volumeMounts"]
    assert "subPath" not in mount  # Kubernetes never replaces such a file
    assert {"name": "COLDFRAME_TOKENS_FILE", "value": f"{mount['mountPath']}/tokens"} in container["env"]
    assert [found["secret"]["secretName"] for found in pod["volumes"]] == ["coldframe-tokens"]
    for told in (ANYONE, {"COLDFRAME_TOKENS_FILE": "/elsewhere"}):
        without = pod_of(replace(USUAL, environment=told))
        assert "volumes" not in without and "volumeMounts" not in without["containers"][0]


@pytest.mark.parametrize("grace", [None, "100"])
def test_pod_is_killed_after_its_drain(grace: str | None) -> None:
    """The grace period is the notice, the server's own grace, as the operator set it, and a margin."""
    given = {"COLDFRAME_DRAIN_GRACE_S": grace} if grace else {}
    pod = pod_of(Choices("a", "b", USUAL.size, USUAL.replicas, given))
    told = {found["name"]: found["value"] for found in pod["containers"][0]["env"]}
    assert told[NOTICE] == str(NOTICE_S)
    drain_s = int(grace or 25)
    assert pod["terminationGracePeriodSeconds"] == NOTICE_S + drain_s + MARGIN_S


def test_server_calls_nobody_without_a_shared_cache() -> None:
    """The policy lets nothing out; with a shared cache, names and HTTPS."""
    assert by_kind(USUAL)["NetworkPolicy"]["spec"]["egress"] == []
    [rule] = by_kind(WITH_CACHE)["NetworkPolicy"]["spec"]["egress"]
    assert {found["port"] for found in rule["ports"]} == {53, 443}


def test_jobs_are_let_out() -> None:
    """With jobs the server asks DynamoDB, SQS and S3: the policy lets them out."""
    chosen = Choices("a", "b", USUAL.size, USUAL.replicas, {"COLDFRAME_JOBS_TABLE": "jobs"})
    [rule] = by_kind(chosen)["NetworkPolicy"]["spec"]["egress"]
    assert {found["port"] for found in rule["ports"]} == {53, 443}
