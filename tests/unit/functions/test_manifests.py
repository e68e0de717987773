"""Committed manifests agree with the server: port, routes, user, settings, tokens and the time of an end."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from coldframe.server.facts import DEFAULT_PORT, GID, HEALTH_COMMAND, LIVE, METRICS, READY, UID
from coldframe.server.settings import ServerSettings, load_server_settings
from tests.conftest import ROOT

FOLDER = ROOT / "functions" / "server" / "manifests"
BASE = {path.stem: yaml.safe_load(path.read_text()) for path in (FOLDER / "base").glob("*.yaml")}
LISTED = BASE.pop("kustomization")["resources"]
DEPLOYMENT = BASE["deployment"]["spec"]
KNATIVE = yaml.safe_load((FOLDER / "knative.yaml").read_text())
KSERVE = yaml.safe_load((FOLDER / "kserve.yaml").read_text())
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text())
COMPOSE_GPU = yaml.safe_load((FOLDER / "compose.gpu.yaml").read_text())
TASK = json.loads((FOLDER / "task.json").read_text())

POD = DEPLOYMENT["template"]["spec"]
REVISION = KNATIVE["spec"]["template"]["spec"]
PREDICTOR = KSERVE["spec"]["predictor"]
PODS = {"kubernetes": POD, "knative": REVISION, "kserve": PREDICTOR}
SERVICE = COMPOSE["services"]["coldframe"]
[CONTAINER] = TASK["containerDefinitions"]

MARGIN_S = 5
"""Between the end of the drain and the kill: the process still has to exit."""

with_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl")


def environment(entries: list[dict[str, str]]) -> dict[str, str]:
    """Variables of a container."""
    return {entry["name"]: entry["value"] for entry in entries}


ENVIRONMENTS = {
    **{name: environment(pod["containers"][0]["env"]) for name, pod in PODS.items()},
    "compose": SERVICE["environment"],
    "compose.gpu": COMPOSE_GPU["services"]["coldframe"]["environment"],
    "ecs": environment(CONTAINER["environment"]),
}


def settings(name: str) -> ServerSettings:
    """What the server reads from the manifest's variables. Raises BadSetting."""
    return load_server_settings(ENVIRONMENTS[name])


def drain_s(name: str) -> int:
    """Seconds from SIGTERM until the server has answered what it accepted, or gives up."""
    return settings(name).drain_notice_s + settings(name).drain_grace_s


def built(overlay: Path) -> dict[str, Any]:
    """Objects of a Kustomize overlay, by kind."""
    done = subprocess.run(["kubectl", "kustomize", overlay], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {document["kind"]: document for document in yaml.safe_load_all(done.stdout)}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_server_takes_the_settings(name: str) -> None:
    """The server knows every variable that a manifest sets."""
    assert settings(name)


@pytest.mark.parametrize("name", PODS)
def test_container_is_the_server(name: str) -> None:
    """Port, probes and user are the server's own."""
    [container] = PODS[name]["containers"]
    assert [port["containerPort"] for port in container["ports"]] == [DEFAULT_PORT]
    assert container["readinessProbe"]["httpGet"] == {"path": READY, "port": DEFAULT_PORT}
    assert container["livenessProbe"]["httpGet"] == {"path": LIVE, "port": DEFAULT_PORT}
    security = container["securityContext"]
    assert (security["runAsUser"], security["runAsGroup"]) == (UID, GID)


@pytest.mark.parametrize("name", PODS)
def test_pod_may_do_nothing(name: str) -> None:
    """The pod passes the Pod Security Standard `restricted`, on a root that nobody can write to."""
    pod = PODS[name]
    security = pod["containers"][0]["securityContext"]
    assert security["runAsNonRoot"] and security["readOnlyRootFilesystem"]
    assert not security["allowPrivilegeEscalation"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert all(mount["readOnly"] for mount in pod["containers"][0]["volumeMounts"])


@pytest.mark.parametrize("name", PODS)
def test_tokens_are_a_secret(name: str) -> None:
    """The pod mounts the secret as a folder, where the server looks."""
    [container] = PODS[name]["containers"]
    [mount] = container["volumeMounts"]
    assert "subPath" not in mount  # Kubernetes never replaces such a file
    assert settings(name).tokens_file == f"{mount['mountPath']}/tokens"
    [volume] = PODS[name]["volumes"]
    assert volume == {"name": mount["name"], "secret": {"secretName": "coldframe-tokens"}}


@pytest.mark.parametrize("name", PODS)
def test_requests_equal_limits(name: str) -> None:
    """Without a GPU, for the processor and for memory."""
    [container] = PODS[name]["containers"]
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert container["resources"]["limits"] == {"cpu": "1", "memory": "1024Mi"}


def test_kustomization_lists_every_file() -> None:
    """No file of the base is forgotten."""
    assert {Path(name).stem for name in LISTED} == set(BASE)


def test_selectors_match_the_pods() -> None:
    """Service, Deployment, budget and policy mean the labels that the pods have."""
    labels = DEPLOYMENT["template"]["metadata"]["labels"]
    assert BASE["service"]["spec"]["selector"] == labels
    assert DEPLOYMENT["selector"] == {"matchLabels": labels}
    assert BASE["disruption-budget"]["spec"]["selector"] == {"matchLabels": labels}
    assert BASE["network-policy"]["spec"]["podSelector"] == {"matchLabels": labels}
    assert [spread["labelSelector"]["matchLabels"] for spread in POD["topologySpreadConstraints"]] == [
        labels
    ] * 2


def test_only_the_autoscaler_sets_the_number_of_replicas() -> None:
    """The Deployment names no number that would undo it."""
    assert "replicas" not in DEPLOYMENT
    scaler = BASE["autoscaler"]["spec"]
    assert scaler["minReplicas"] <= scaler["maxReplicas"]
    assert scaler["scaleTargetRef"]["name"] == BASE["deployment"]["metadata"]["name"]


def test_startup_asks_for_readiness_every_second() -> None:
    """A replica serves as soon as it can."""
    startup = POD["containers"][0]["startupProbe"]
    assert startup["httpGet"] == {"path": READY, "port": DEFAULT_PORT}
    assert startup["periodSeconds"] == 1


def test_prometheus_reads_the_metrics() -> None:
    """Annotations lead to the server's metrics."""
    annotations = DEPLOYMENT["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/path"] == METRICS
    assert annotations["prometheus.io/port"] == str(DEFAULT_PORT)


def test_policy_lets_nothing_out() -> None:
    """Requests come in at the port; the server calls nobody."""
    policy = BASE["network-policy"]["spec"]
    assert policy["ingress"] == [{"ports": [{"port": DEFAULT_PORT}]}]
    assert policy["egress"] == []


def test_kill_comes_after_the_drain() -> None:
    """Nothing is killed before it has had its notice, its grace, and a margin for its exit."""
    assert settings("kubernetes").drain_notice_s == settings("ecs").drain_notice_s == 5
    assert POD["terminationGracePeriodSeconds"] == drain_s("kubernetes") + MARGIN_S
    assert CONTAINER["stopTimeout"] == drain_s("ecs") + MARGIN_S
    assert SERVICE["stop_grace_period"] == f"{drain_s('compose') + MARGIN_S}s"
    assert REVISION["timeoutSeconds"] >= drain_s("knative") + MARGIN_S
    assert PREDICTOR["timeout"] == REVISION["timeoutSeconds"]


@pytest.mark.parametrize("name", ["knative", "kserve"])
def test_replica_gets_as_many_requests_as_it_has_threads(name: str) -> None:
    """Further requests wait in front of it; another replica starts long before."""
    most = PODS[name]["containerConcurrency"]
    assert most == settings(name).request_threads
    annotations = KNATIVE["spec"]["template"]["metadata"]["annotations"]
    target = {"knative": annotations["autoscaling.knative.dev/target"], "kserve": PREDICTOR["scaleTarget"]}
    assert int(target[name]) < most


def test_scaling_begins_at_zero() -> None:
    """Knative and KServe count requests; without any, no replica runs."""
    annotations = KNATIVE["spec"]["template"]["metadata"]["annotations"]
    prefix = "autoscaling.knative.dev/"
    assert annotations[prefix + "min-scale"] == str(PREDICTOR["minReplicas"]) == "0"
    assert annotations[prefix + "max-scale"] == str(PREDICTOR["maxReplicas"]) == "10"
    assert annotations[prefix + "metric"] == PREDICTOR["scaleMetric"] == "concurrency"


def test_readiness_of_knative_has_no_period() -> None:
    """With a period, Knative would ask once in that time, and a start from zero would wait for it."""
    for pod in REVISION, PREDICTOR:
        assert "periodSeconds" not in pod["containers"][0]["readinessProbe"]


def test_predictor_speaks_the_open_inference_protocol() -> None:
    """Protocol v2, in the mode that can start from zero."""
    assert ENVIRONMENTS["kserve"]["PROTOCOL"] == "v2"
    assert KSERVE["metadata"]["annotations"] == {"serving.kserve.io/deploymentMode": "Knative"}


def test_compose_is_for_this_machine() -> None:
    """Docker publishes past a firewall, so the port is bound to the loopback address."""
    assert SERVICE["ports"] == [f"127.0.0.1:{DEFAULT_PORT}:{DEFAULT_PORT}"]


def test_compose_mounts_tokens() -> None:
    """The file of tokens stands beside the Compose file."""
    assert COMPOSE["secrets"] == {"tokens": {"file": "./coldframe-tokens"}}
    assert SERVICE["secrets"] == ["tokens"]
    assert settings("compose").tokens_file == "/run/secrets/tokens"


def test_compose_and_ecs_run_as_the_server_does() -> None:
    """The image's user, a root that nobody can write to, and no capability."""
    assert SERVICE["user"] == CONTAINER["user"] == f"{UID}:{GID}"
    assert SERVICE["read_only"] and CONTAINER["readonlyRootFilesystem"]
    assert SERVICE["cap_drop"] == CONTAINER["linuxParameters"]["capabilities"]["drop"] == ["ALL"]


def test_task_is_the_server() -> None:
    """Port, health command and tokens; a role writes the log, without which a task would end unexplained."""
    assert CONTAINER["portMappings"][0]["containerPort"] == DEFAULT_PORT
    assert CONTAINER["healthCheck"]["command"] == ["CMD", *HEALTH_COMMAND]
    assert CONTAINER["secrets"] == [{"name": "COLDFRAME_TOKENS", "valueFrom": "/coldframe/tokens"}]
    assert TASK["executionRoleArn"] and CONTAINER["logConfiguration"]["logDriver"] == "awslogs"


def test_fargate_sells_the_size() -> None:
    """One virtual processor comes with 2 to 8 GB.

    https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-cpu-memory-error.html, read 2026-11-22
    """
    assert TASK["requiresCompatibilities"] == ["FARGATE"]
    assert TASK["cpu"] == "1024"
    assert int(TASK["memory"]) in range(2048, 8193, 1024)


@with_kubectl
def test_overlay_for_gpus() -> None:
    """Two replicas, each with a GPU, on tainted nodes too. Nothing scales them by the processor."""
    objects = built(FOLDER / "gpu")
    assert "HorizontalPodAutoscaler" not in objects
    deployment = objects["Deployment"]["spec"]
    assert deployment["replicas"] == 2
    assert deployment["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    pod = deployment["template"]["spec"]
    assert [toleration["key"] for toleration in pod["tolerations"]] == ["nvidia.com/gpu"]
    [container] = pod["containers"]
    assert container["image"] == "coldframe:gpu"
    assert container["resources"]["limits"] == {"cpu": "1", "memory": "4096Mi", "nvidia.com/gpu": "1"}
    assert environment(container["env"]) == {**ENVIRONMENTS["kubernetes"], "COLDFRAME_DEVICE": "cuda"}


@with_kubectl
def test_overlay_for_releases() -> None:
    """Models come from a volume that the pod can only read; copies have room in a folder of their own."""
    pod = built(FOLDER / "releases")["Deployment"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    environ = environment(container["env"])
    assert environ == {**ENVIRONMENTS["kubernetes"], "COLDFRAME_RELEASES": "/releases"}
    assert load_server_settings(environ).releases == "/releases"
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    assert mounts["/releases"]["readOnly"] and "readOnly" not in mounts["/tmp"]  # noqa: S108 - of the pod
    assert {mount["name"] for mount in mounts.values()} == {volume["name"] for volume in pod["volumes"]}
    assert container["securityContext"]["readOnlyRootFilesystem"]


def test_compose_reserves_a_gpu() -> None:
    """The second file adds NVIDIA's device, image and memory; without a GPU the server does not start."""
    service = COMPOSE_GPU["services"]["coldframe"]
    [device] = service["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    assert service["image"] == "coldframe:gpu"
    assert settings("compose.gpu").device == "cuda"


@with_kubectl
def test_overlay_changes_the_base(tmp_path: Path) -> None:
    """A user's overlay changes image, namespace and a setting, with Kustomize's own means."""
    shutil.copytree(FOLDER, tmp_path / "manifests")
    overlay = tmp_path / "production"
    overlay.mkdir()
    example = (ROOT / "docs" / "serve.md").read_text().partition("# production/kustomization.yaml\n")[2]
    lines = example.partition("\n\n")[0].splitlines()
    (overlay / "kustomization.yaml").write_text("\n".join(line.removeprefix("    ") for line in lines))
    objects = built(overlay)
    assert {document["metadata"]["namespace"] for document in objects.values()} == {"texts"}
    [container] = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/coldframe:1.0"
    assert environment(container["env"]) == {**ENVIRONMENTS["kubernetes"], "COLDFRAME_MODELS": "topics"}
