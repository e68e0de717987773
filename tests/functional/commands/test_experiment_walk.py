"""The walk in docs/experiments.md, by real servers: from a second model to all the traffic."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from coldframe.model.bundle import load_manifest
from coldframe.model.files import MANIFEST
from tests.conftest import EXAMPLE, sealed
from tests.functional.commands.walks import blocks_of
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.documents

WALK = list(blocks_of("experiments.md"))
SECOND = "topics-2"


@pytest.fixture(scope="module")
def retrained(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, and a second model with its labels and heads."""
    folder = tmp_path_factory.mktemp("retrained")
    for part in ("encoders", EXAMPLE):
        (folder / part).symlink_to(bundle / part)
    shutil.copytree(bundle / EXAMPLE, folder / SECOND)
    manifest = sealed(msgspec.structs.replace(load_manifest(bundle, EXAMPLE), name=SECOND))
    (folder / SECOND / MANIFEST).write_bytes(manifest.encode())
    return folder


def test_the_walk_ends_with_all_the_traffic(retrained: Path, tmp_path: Path) -> None:
    """Every command of the page runs in its order, and prints what the page says beside it.

    A server writes its counts and decides when it ends.
    """
    assert len(WALK) == 8
    store = {"COLDFRAME_EXPERIMENTS": str(tmp_path / "experiment")}
    for block in WALK:
        if block.has_requests:
            server = ServerProcess(retrained, **store, COLDFRAME_MODELS=f"{EXAMPLE},{SECOND}")
            block.run_beside(server, store, tmp_path)
        else:
            block.run(store, tmp_path)
