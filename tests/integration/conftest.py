"""The container images, built once for all tests; without a Docker engine they are skipped."""

import platform
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from coldframe_bench.targets.container import AS_IT_IS, Container, Launch, running
from tests.conftest import ROOT
from tests.functional.conftest import aws_environ, moto, store
from tests.integration.emulated import emulated
from tests.test_docs import command_environ

__all__ = ["aws_environ", "moto", "store"]

IMAGE = "coldframe"


@dataclass(frozen=True)
class BuiltImage:
    """An image, for this machine's architecture or not."""

    image: str
    is_native: bool

    @property
    def launch(self) -> Launch:
        """How its programs start here; skips the test where they cannot."""
        return AS_IT_IS if self.is_native else emulated()


@pytest.fixture(scope="session")
def image(containers: None, bundle: Path) -> str:
    """The image as `make image` builds it."""
    return make_image(IMAGE)


@pytest.fixture(scope="session")
def arm64(containers: None, bundle: Path) -> BuiltImage:
    """The image as `make image ARCHITECTURE=arm64` builds it on a machine of another architecture."""
    if platform.machine() == "aarch64":
        pytest.skip("this machine's own image is for arm64")
    return BuiltImage(make_image(f"{IMAGE}:arm64", "ARCHITECTURE=arm64"), is_native=False)


@pytest.fixture(scope="session", params=["native", "arm64"])
def any_image(request: pytest.FixtureRequest) -> BuiltImage:
    """Each of the two images: what is true of one has to be true of the other."""
    if request.param == "native":
        return BuiltImage(request.getfixturevalue("image"), is_native=True)
    other: BuiltImage = request.getfixturevalue("arm64")
    return other


@pytest.fixture(scope="session")
def container(image: str) -> Iterator[Container]:
    """The image, running as on Lambda."""
    with running(image) as started:
        yield started


@pytest.fixture(scope="session")
def any_container(any_image: BuiltImage) -> Iterator[Container]:
    """Each of the two images, running as on Lambda."""
    with running(any_image.image, any_image.launch) as started:
        yield started


def make_image(image: str, *variables: str) -> str:
    """Makes an image and returns its name."""
    done = subprocess.run(
        ["make", "image", *variables],
        cwd=ROOT,
        env=command_environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return image
