"""A folder of files that belong together appears whole, or not at all."""

import subprocess
import sys
from pathlib import Path

import pytest

from layers.model.publish import whole_folder
from tests.conftest import ROOT

KILLED = """
import os, signal, sys
from pathlib import Path
from layers.model.publish import whole_folder
with whole_folder(Path(sys.argv[1])) as folder:
    (folder / "new").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A folder with an older content."""
    folder = tmp_path / "place" / "heads"
    folder.mkdir(parents=True)
    (folder / "old").write_text("old")
    return folder


def names(folder: Path) -> list[str]:
    """What lies in a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_new_content_replaces_the_old(target: Path) -> None:
    """Afterwards the folder holds the new files only, and nothing is left beside it."""
    with whole_folder(target) as folder:
        (folder / "new").write_text("new")
        assert names(target) == ["old"]
    assert names(target) == ["new"]
    assert names(target.parent) == ["heads"]


def test_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    """The folder and those above it are made."""
    with whole_folder(tmp_path / "a" / "b") as folder:
        (folder / "new").write_text("new")
    assert names(tmp_path / "a") == ["b"]


def test_error_leaves_the_old_content(target: Path) -> None:
    """After an error the folder is as it was, and nothing is left beside it."""
    with pytest.raises(ValueError, match="training failed"), whole_folder(target) as folder:
        (folder / "new").write_text("half")
        raise ValueError("training failed")
    assert names(target) == ["old"]
    assert names(target.parent) == ["heads"]


def test_killed_process_leaves_the_old_content(target: Path) -> None:
    """After kill -9 half-way the folder is as it was."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(target)], cwd=ROOT)
    assert done.returncode == -9
    assert names(target) == ["old"]
