"""What the template and functions/Dockerfile promise each other."""

import ast
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

from coldframe.model.files import DEFAULT
from coldframe_functions.predict.engine import Engine
from coldframe_local.emulator.template.syntax.documents import read_document

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "functions" / "Dockerfile").read_text()
TEMPLATE: dict[str, Any] = read_document(ROOT / "template.yaml")
RESOURCES: dict[str, Any] = TEMPLATE["Resources"]
FUNCTION: dict[str, Any] = RESOURCES["PredictFunction"]["Properties"]
VARIABLES: dict[str, Any] = FUNCTION["Environment"]["Variables"]


def copies() -> list[tuple[str, str]]:
    """(source, target) of each COPY that reads the build context."""
    lines = [line.split()[1:] for line in DOCKERFILE.splitlines() if line.startswith("COPY ")]
    of_context = [words for words in lines if not words[0].startswith("--from")]
    return [(source, target) for *sources, target in of_context for source in sources]


def ignored(path: str) -> bool:
    """Whether .dockerignore keeps `path` out of the build context; the last rule that matches decides."""
    verdict = False
    for rule in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = rule.removeprefix("!").removeprefix("**/")
        if not rule or rule.startswith("#"):
            continue
        if pattern == "*" or path == pattern or path.startswith(f"{pattern}/"):
            verdict = not rule.startswith("!")
    return verdict


def test_handler_exists() -> None:
    """The CMD of the image names the engine's method that takes an event and a context."""
    [command] = re.findall(r"^CMD (.+)$", DOCKERFILE, re.MULTILINE)
    module, _, name = json.loads(command)[0].rpartition(".")
    source = ROOT.joinpath("functions", *module.split(".")).with_suffix(".py").read_text()
    [handler] = [ast.unparse(n.value) for n in ast.parse(source).body if isinstance(n, ast.Assign)]
    assert (name, handler) == ("handler", "_engine.handle_event")
    assert list(inspect.signature(Engine.handle_event).parameters) == ["self", "event", "context"]


def test_model_dir_is_where_the_bundle_is() -> None:
    """Template, image and COPY agree on the folder of encoders and models."""
    [target] = [target for source, target in copies() if source == "models/"]
    assert target.rstrip("/") == VARIABLES["COLDFRAME_MODEL_DIR"]
    assert f"ENV COLDFRAME_MODEL_DIR={VARIABLES['COLDFRAME_MODEL_DIR']}\n" in DOCKERFILE


def test_image_is_built_from_the_root() -> None:
    """SAM builds the stage `lambda` of functions/Dockerfile with the repository as its context."""
    assert FUNCTION["PackageType"] == "Image"
    assert RESOURCES["PredictFunction"]["Metadata"] == {
        "Dockerfile": "functions/Dockerfile",
        "DockerContext": ".",
        "DockerTag": "serve",
        "DockerBuildTarget": "lambda",
        "DockerBuildArgs": {"LAMBDA_BASE": {"Ref": "LambdaBase"}, "EXTRA": {"Ref": "ImageExtra"}},
    }


def test_base_image_has_one_default() -> None:
    """`docker build` and `sam build` start from the same base image."""
    assert f"ARG LAMBDA_BASE={TEMPLATE['Parameters']['LambdaBase']['Default']}\n" in DOCKERFILE


@pytest.mark.parametrize("source", [source for source, _ in copies()])
def test_copied_paths_exist(source: str) -> None:
    """Whatever the Dockerfile copies is in the repository, or is what is built."""
    assert (ROOT / source).exists() or source == "models/"


@pytest.mark.parametrize("source", [source for source, _ in copies()])
def test_copied_paths_are_in_the_context(source: str) -> None:
    """.dockerignore lets through whatever the Dockerfile copies."""
    assert not ignored(source.rstrip("/"))


def test_image_carries_the_record_of_the_default_model() -> None:
    """The name of the model that answers where none is named goes where the models go."""
    assert not ignored(f"models/{DEFAULT}")


@pytest.mark.parametrize(
    "path", [".git", ".venv", ".aws-sam", "tests", "bench", "local", "layers/model/coldframe_training/heads"]
)
def test_the_rest_is_not_in_the_context(path: str) -> None:
    """.dockerignore keeps out what the image does not need."""
    assert ignored(path)


def test_dockerfile_suits_the_classic_builder() -> None:
    """The Dockerfile uses no BuildKit syntax: SAM builds without BuildKit."""
    code = "\n".join(line for line in DOCKERFILE.splitlines() if not line.startswith("#"))
    assert not re.search(r"--mount|--chmod|--chown|--link|<<", code)


def test_dependencies_are_hash_checked_wheels() -> None:
    """The image installs what the lock names, by hash, and never runs a build."""
    for flag in ("--no-deps", "--require-hashes", "--only-binary=:all:"):
        assert flag in DOCKERFILE


def test_nothing_is_reported_to_third_parties() -> None:
    """The image turns off the telemetry that onnxruntime has on by default."""
    assert "ENV ORT_DISABLE_TELEMETRY=1\n" in DOCKERFILE
