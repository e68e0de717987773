"""`coldframe models`: a model that was replaced comes back, and none is removed by mistake."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coldframe.model.bundle import load_manifest
from coldframe.model.files import previous_folder
from tests.conftest import EXAMPLE, SECOND, add_model

COLDFRAME = Path(sys.executable).parent / "coldframe"


@pytest.fixture
def models(bundle: Path, tmp_path: Path) -> Path:
    """The example, and a model with one that it replaced."""
    (tmp_path / "encoders").symlink_to(bundle / "encoders")
    shutil.copytree(bundle / EXAMPLE, tmp_path / EXAMPLE)
    add_model(tmp_path, SECOND, temperature=0.4)
    shutil.move(tmp_path / SECOND, previous_folder(tmp_path, SECOND))
    add_model(tmp_path, SECOND, temperature=0.5)
    return tmp_path


def run(models: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """`coldframe models`, without a terminal."""
    return subprocess.run(
        [COLDFRAME, "models", *options],
        env={"COLDFRAME_MODEL_DIR": str(models), "PATH": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def test_restore(models: Path) -> None:
    """The model before takes its name back; a second restore undoes the first."""
    found = []
    for _ in range(3):
        found.append(load_manifest(models, SECOND).estimator.temperature)
        assert run(models, "--restore", SECOND).returncode == 0
    assert found == [0.5, 0.4, 0.5]


def test_restore_of_a_removed_name(models: Path) -> None:
    """The model before comes back also where the name has none any more."""
    shutil.rmtree(models / SECOND)
    assert run(models, "--restore", SECOND).returncode == 0
    assert load_manifest(models, SECOND).estimator.temperature == 0.4


def test_nothing_to_restore(models: Path) -> None:
    """A model that replaced none is left alone, and the error says what to do."""
    done = run(models, "--restore", EXAMPLE)
    assert done.returncode == 1
    assert f"keeps no earlier model '{EXAMPLE}'. Train it again" in done.stderr


def test_remove_needs_a_yes(models: Path) -> None:
    """Where nobody can be asked, a model is removed with --yes only, and the one before it with it."""
    refused = run(models, "--remove", SECOND)
    assert (refused.returncode, (models / SECOND).exists()) == (1, True)
    assert "Add --yes to remove" in refused.stderr
    assert run(models, "--remove", SECOND, "--yes").returncode == 0
    assert not (models / SECOND).exists()
    assert not previous_folder(models, SECOND).exists()
