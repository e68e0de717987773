"""Committed manifests are valid by the published schemas of Kubernetes, Knative, KServe, Compose and ECS.

No package brings Knative's schemas, so its fields are copied from its code, read 2026-11-22:
https://github.com/knative/serving/blob/main/pkg/apis/serving/fieldmask.go and k8s_validation.go.
"""

import json
import subprocess
from copy import deepcopy
from pathlib import Path
from typing import Any

import botocore.session
import kubernetes_validate
import pytest
from botocore.validate import ParamValidator
from check_jsonschema.builtin_schemas import get_builtin_schema
from jsonschema import Draft202012Validator, ValidationError

from tests.conftest import ROOT
from tests.unit.functions.test_manifests import (
    BASE,
    COMPOSE,
    COMPOSE_GPU,
    FOLDER,
    KNATIVE,
    KSERVE,
    PREDICTOR,
    REVISION,
    TASK,
    built,
    with_kubectl,
)

# The oldest that clouds still sell at the end of 2026, and the newest.
VERSIONS = ("1.33", "1.37")

OF_REVISION = {"containerConcurrency", "timeoutSeconds"}
OF_PREDICTOR = {
    "containerConcurrency", "maxReplicas", "minReplicas", "scaleMetric", "scaleTarget", "timeout",
}  # fmt: skip
OF_POD = {
    "automountServiceAccountToken", "containers", "enableServiceLinks", "imagePullSecrets",
    "serviceAccountName", "volumes",
}  # fmt: skip
OF_CONTAINER = {
    "args", "command", "env", "envFrom", "image", "imagePullPolicy", "livenessProbe", "name", "ports",
    "readinessProbe", "resources", "securityContext", "volumeMounts", "workingDir",
}  # fmt: skip
RESERVED = {"PORT", "K_SERVICE", "K_CONFIGURATION", "K_REVISION"}
MOST_CONCURRENCY, MOST_TIMEOUT_S = 1000, 600
"""https://knative.dev/docs/serving/configuration/config-defaults/, read 2026-11-22."""

# https://github.com/compose-spec/compose-spec/blob/main/schema/compose-spec.json, as check-jsonschema 0.39
# (2026-10-26) brings it.
COMPOSE_SCHEMA = Draft202012Validator(get_builtin_schema("vendor.compose-spec"))
KSERVE_PYTHON = ROOT / ".venv-kserve" / "bin" / "python"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", BASE)
def test_base_is_valid(name: str, version: str) -> None:
    """The schemas of Kubernetes know every field, and take every value."""
    kubernetes_validate.validate(BASE[name], version, strict=True)


@with_kubectl
@pytest.mark.parametrize("overlay", ["gpu", "releases"])
def test_overlay_is_valid(overlay: str) -> None:
    """Its objects are valid as Kustomize builds them."""
    for document in built(FOLDER / overlay).values():
        for version in VERSIONS:
            kubernetes_validate.validate(document, version, strict=True)


def test_schema_refuses_what_kubernetes_does_not_know() -> None:
    """A misspelt field is not a valid manifest: the tests above can fail."""
    deployment = deepcopy(BASE["deployment"])
    deployment["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, VERSIONS[-1], strict=True)


@pytest.mark.parametrize(
    ("spec", "own"), [(REVISION, OF_REVISION), (PREDICTOR, OF_PREDICTOR)], ids=["knative", "kserve"]
)
def test_knative_takes_the_pod(spec: dict[str, Any], own: set[str]) -> None:
    """Knative takes its fields without a feature flag. KServe hands its pod to Knative, too."""
    pod = {field: value for field, value in spec.items() if field not in own}
    assert set(pod) <= OF_POD
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": pod}
    kubernetes_validate.validate(manifest, VERSIONS[-1], strict=True)
    [container] = spec["containers"]
    assert set(container) <= OF_CONTAINER
    assert {variable["name"] for variable in container["env"]}.isdisjoint(RESERVED)
    assert [port["name"] for port in container["ports"]] == ["http1"]
    assert 0 < spec["containerConcurrency"] <= MOST_CONCURRENCY
    [timeout_s] = [spec[name] for name in ("timeout", "timeoutSeconds") if name in spec]
    assert 0 < timeout_s <= MOST_TIMEOUT_S


def test_knative_service_is_a_template() -> None:
    """The object is a Service of Knative, which consists of its template."""
    assert (KNATIVE["apiVersion"], KNATIVE["kind"]) == ("serving.knative.dev/v1", "Service")
    assert set(KNATIVE["spec"]) == {"template"}
    annotations = KNATIVE["spec"]["template"]["metadata"]["annotations"]
    assert all(isinstance(value, str) for value in annotations.values())


@pytest.mark.skipif(not KSERVE_PYTHON.exists(), reason="no .venv-kserve: run `make .venv-kserve/stamp`")
def test_kserve_understands_every_field() -> None:
    """Nothing is lost in the models of KServe 0.21; a field that they do not know is."""
    misspelt = deepcopy(KSERVE)
    misspelt["spec"]["predictor"]["minReplica"] = 0
    done = subprocess.run(
        [KSERVE_PYTHON, Path(__file__).with_name("kserve_round_trip.py")],
        input=json.dumps([KSERVE, misspelt]),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    understood, lost = json.loads(done.stdout)
    assert understood == KSERVE
    assert "minReplica" not in lost["spec"]["predictor"]


@pytest.mark.parametrize("document", [COMPOSE, COMPOSE_GPU], ids=["compose", "compose.gpu"])
def test_compose_is_valid(document: Any) -> None:
    """The schema of Compose files knows every field, and takes every value; a misspelt field is refused."""
    COMPOSE_SCHEMA.validate(document)
    misspelt = deepcopy(document)
    misspelt["services"]["coldframe"]["read_olny"] = True
    with pytest.raises(ValidationError):
        COMPOSE_SCHEMA.validate(misspelt)


def test_task_is_valid() -> None:
    """AWS's own model of RegisterTaskDefinition takes the request, and refuses a misspelt field."""
    model = botocore.session.get_session().get_service_model("ecs")
    shape = model.operation_model("RegisterTaskDefinition").input_shape
    report = ParamValidator().validate(TASK, shape)
    assert not report.has_errors(), report.generate_report()
    assert ParamValidator().validate(TASK | {"famly": "a"}, shape).has_errors()
