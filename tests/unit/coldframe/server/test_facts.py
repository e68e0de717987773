"""What manifests say is what the image is."""

import json

from dockerfile_parse import DockerfileParser

from coldframe.server.facts import DEFAULT_PORT, GID, HEALTH_COMMAND, UID
from tests.conftest import ROOT

LINES = DockerfileParser(str(ROOT / "functions" / "server" / "Dockerfile")).structure


def said(instruction: str) -> str:
    """What the last such instruction says."""
    return [line["value"] for line in LINES if line["instruction"] == instruction][-1]


def test_user_is_that_of_the_image() -> None:
    """A manifest that names the user names the one that the image is tested with."""
    assert said("USER") == f"{UID}:{GID}"


def test_port_is_exposed() -> None:
    """The image exposes the port that the server takes when nobody names one."""
    assert said("EXPOSE") == str(DEFAULT_PORT)


def test_health_command_is_that_of_the_image() -> None:
    """Docker and ECS ask the same command."""
    assert json.loads(said("HEALTHCHECK").partition("CMD ")[2]) == list(HEALTH_COMMAND)
