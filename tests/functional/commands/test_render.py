"""`coldframe render`, as its users type it."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from coldframe.errors import BadSetting
from local.cli import main
from local.commands.render import render

KINDS = {
    "kubernetes": [
        "Service",
        "Deployment",
        "HorizontalPodAutoscaler",
        "PodDisruptionBudget",
        "NetworkPolicy",
    ],
    "knative": ["Service"],
    "kserve": ["InferenceService"],
}


NEEDED = {"ecs": ("--execution-role", "arn:aws:iam::123456789012:role/ecsTaskExecutionRole")}


def rendered(*arguments: str) -> str:
    """What the command prints."""
    done = CliRunner().invoke(main, ["render", *arguments, *NEEDED.get(arguments[0], ())])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("home", KINDS)
def test_home_is_named_by_its_objects(home: str) -> None:
    """Every object has the name and the image that were asked for."""
    found = list(yaml.safe_load_all(rendered(home, "--name", "topics", "--image", "registry.example/c:1")))
    assert [document["kind"] for document in found] == KINDS[home]
    assert {document["metadata"]["name"] for document in found} == {"topics"}
    assert "image: registry.example/c:1\n" in rendered(home, "--image", "registry.example/c:1")


@pytest.mark.parametrize("home", render.commands)
def test_setting_reaches_the_server(home: str) -> None:
    """A setting and the names of models are variables of the container, in every home."""
    said = rendered(home, "--allow-anyone", "--models", "topics,tickets", "--env", "COLDFRAME_MAX_TEXTS=7")
    assert "COLDFRAME_MODELS" in said and "topics,tickets" in said
    assert "COLDFRAME_MAX_TEXTS" in said and '"7"' in said


@pytest.mark.parametrize("home", render.commands)
def test_bad_setting_is_refused_here_and_not_at_the_start(home: str) -> None:
    """What the server would refuse when it starts never reaches a cluster."""
    done = CliRunner().invoke(main, ["render", home, "--env", "COLDFRAME_MAX_TEXT=7", *NEEDED.get(home, ())])
    assert done.exit_code == 1
    assert "COLDFRAME_MAX_TEXT is not a setting" in done.output
    assert not isinstance(done.exception, BadSetting)


def test_manifest_is_no_place_for_tokens() -> None:
    """Tokens as a setting are refused, and not repeated."""
    done = CliRunner().invoke(main, ["render", "knative", "--env", "COLDFRAME_TOKENS=shop:abc"])
    assert (done.exit_code, "shop" in done.output) == (2, False)


def test_gpu_needs_its_own_image_and_says_so_to_the_server() -> None:
    """With a GPU the server starts on CUDA or not at all; whoever wants another device says so."""
    said = rendered("compose", "--gpu", "1")
    assert "image: coldframe:gpu\n" in said
    assert "COLDFRAME_DEVICE: cuda\n" in said
    assert "COLDFRAME_DEVICE: auto\n" in rendered("compose", "--gpu", "1", "--env", "COLDFRAME_DEVICE=auto")


def test_task_without_a_role_is_refused() -> None:
    """ECS could neither pull the image nor write a log."""
    done = CliRunner().invoke(main, ["render", "ecs"])
    assert (done.exit_code, "--execution-role" in done.output) == (2, True)


def test_fewest_are_no_more_than_most() -> None:
    """The usage error names both numbers."""
    done = CliRunner().invoke(main, ["render", "knative", "--min", "3", "--max", "2"])
    assert (done.exit_code, "--min 3 is more than --max 2" in done.output) == (2, True)


def test_kustomize_base_is_the_same_objects(tmp_path: Path) -> None:
    """A file for each object, listed in kustomization.yaml, and the files say what standard output says."""
    rendered("kubernetes", "--kustomize", str(tmp_path / "base"))
    base = tmp_path / "base"
    listed = yaml.safe_load((base / "kustomization.yaml").read_text())["resources"]
    assert {path.name for path in base.iterdir()} == {"kustomization.yaml", *listed}
    found = [yaml.safe_load((base / name).read_text()) for name in listed]
    assert found == list(yaml.safe_load_all(rendered("kubernetes")))


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl")
def test_kustomize_patches_the_base(tmp_path: Path) -> None:
    """An overlay changes image, namespace and a setting of the base, with Kustomize's own means."""
    rendered("kubernetes", "--kustomize", str(tmp_path / "base"), "--models", "topics")
    overlay = tmp_path / "production"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text(
        "resources: [../base]\n"
        "namespace: texts\n"
        "images: [{name: coldframe, newName: registry.example/coldframe, newTag: '1.2'}]\n"
    )
    done = subprocess.run(["kubectl", "kustomize", overlay], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = {document["kind"]: document for document in yaml.safe_load_all(done.stdout)}
    assert {document["metadata"]["namespace"] for document in found.values()} == {"texts"}
    [container] = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/coldframe:1.2"
