"""The walk in docs/experiments.md, by real servers: from a second model to all the traffic."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from coldframe.model.bundle import load_manifest
from coldframe.model.files import MANIFEST
from tests.conftest import EXAMPLE, ROOT, sealed
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.documents

PAGE = (ROOT / "docs" / "experiments.md").read_text()
WALK = re.findall(r"```sh walk( requests)?\n(.*?)```", PAGE, re.DOTALL)
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
    """Every command of the page runs in its order, and prints what the page says beside it."""
    assert len(WALK) == 8
    store = {"COLDFRAME_EXPERIMENTS": str(tmp_path / "experiment")}
    for has_requests, block in WALK:
        output = (
            _with_server(block, retrained, store, tmp_path) if has_requests else _run(block, store, tmp_path)
        )
        for expected in re.findall(r"^# → (.*)$", block, re.MULTILINE):
            assert expected in output, output


def _with_server(block: str, models: Path, store: dict[str, str], folder: Path) -> str:
    """What a block prints beside a server, which writes its counts and decides when it ends."""
    server = ServerProcess(models, **store, COLDFRAME_MODELS=f"{EXAMPLE},{SECOND}")
    try:
        server.event("ready")
        output = _run(block, store | {"PORT": str(server.port)}, folder)
        assert server.end() == 0
    finally:
        server.close()
    return output


def _run(block: str, environ: dict[str, str], folder: Path) -> str:
    path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    command = ["bash", "-euo", "pipefail", "-c", block]
    process = subprocess.run(
        command, cwd=folder, env=os.environ | environ | {"PATH": path}, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    return process.stdout
