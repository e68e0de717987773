"""The container image, built once for all tests; without a Docker engine they are skipped."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.container import Container, running
from tests.conftest import ROOT
from tests.functional.conftest import aws_environ, moto, store
from tests.test_docs import command_environ

__all__ = ["aws_environ", "moto", "store"]

IMAGE = "coldframe"


@pytest.fixture(scope="session")
def image(containers: None, bundle: Path) -> str:
    """The image as `make image` builds it."""
    done = subprocess.run(
        ["make", "image"],
        cwd=ROOT,
        env=command_environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return IMAGE


@pytest.fixture(scope="session")
def container(image: str) -> Iterator[Container]:
    """The image, running as on Lambda."""
    with running(image) as started:
        yield started
