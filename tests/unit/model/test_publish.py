"""A folder of files that belong together appears whole, or not at all."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coldframe.model.exchange import CannotExchange, exchange
from coldframe.model.files import MANIFEST, served_models
from coldframe_training.publishing.publish import default_line, whole_folder, whole_model
from tests.conftest import ROOT

KILLED = """
import os, signal, sys
from pathlib import Path
from coldframe_training.publishing.publish import whole_folder
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


MODEL = "tickets"


def publish(models: Path, version: str) -> None:
    """A model of two files, in place of the one that was there."""
    with whole_model(models, MODEL) as stage:
        for file in ("manifest", "head"):
            (stage / MODEL / file).write_text(version)


def folders(folder: Path) -> list[str]:
    """Names of the folders in a folder."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def version_of(folder: Path) -> str | None:
    """The version that both files of a model have; None where there is no such folder."""
    if not folder.exists():
        return None
    [version] = {(folder / file).read_text() for file in ("manifest", "head")}
    return version


def killed_at(step: int, work: Callable[[], None]) -> bool:
    """Runs work in a process that is killed at one of its operations on files; whether it came so far."""
    child = os.fork()
    if child == 0:
        left = step

        def count(event: str, _: tuple[object, ...]) -> None:
            nonlocal left
            if left < 0:  # the kill itself is such an operation
                return
            left -= event.startswith(("os.", "shutil.", "open", "fcntl.", "tempfile.", "ctypes."))
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def cannot_exchange(one: Path, other: Path) -> None:
    """What a disk says that has no such call."""
    raise CannotExchange


def test_killed_at_every_step(tmp_path: Path) -> None:
    """Whenever the process is killed, the name has the old model or the new one, whole."""
    step, reached = 0, True
    while reached:
        models = tmp_path / str(step)
        publish(models, "older")
        publish(models, "old")
        reached = killed_at(step, lambda models=models: publish(models, "new"))  # type: ignore[misc]
        assert version_of(models / MODEL) in ({"old", "new"} if reached else {"new"})
        assert version_of(models / ".previous" / MODEL) in {"older", "old"}
        publish(models, "newest")
        assert version_of(models / MODEL) == "newest"
        assert folders(models) == [".previous", MODEL]
        assert names(models / ".previous") == [MODEL]
        step += 1
    assert step > 20


def test_killed_where_nothing_can_be_exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a disk without the call a killed process may leave a name without a model; the next run finds it."""
    monkeypatch.setattr("coldframe_training.publishing.publish.exchange", cannot_exchange)
    step, reached, without = 0, True, 0
    while reached:
        models = tmp_path / str(step)
        publish(models, "old")
        reached = killed_at(step, lambda models=models: publish(models, "new"))  # type: ignore[misc]
        without += version_of(models / MODEL) is None
        with whole_folder(models / "other"):
            assert version_of(models / MODEL) in {"old", "new"}
        assert folders(models) in (["other", MODEL], [".previous", "other", MODEL])
        step += 1
    assert without


def test_previous_model_is_kept(tmp_path: Path) -> None:
    """The model that was replaced last is kept; a failed training keeps nothing."""
    publish(tmp_path, "first")
    assert folders(tmp_path) == [MODEL]
    publish(tmp_path, "second")
    with pytest.raises(ValueError, match="worse"), whole_model(tmp_path, MODEL):
        raise ValueError("worse")
    assert version_of(tmp_path / ".previous" / MODEL) == "first"


def test_other_trainings_are_left_alone(tmp_path: Path) -> None:
    """What another process is filling is not removed."""
    with whole_folder(tmp_path / "one") as first:
        (first / "file").write_text("half")
        with whole_folder(tmp_path / "two"):
            pass
        assert (first / "file").exists()
    assert names(tmp_path) == ["one", "two"]


def test_exchange(tmp_path: Path) -> None:
    """Two folders have each other's names; without one of them, nothing happens."""
    for name in ("a", "b"):
        (tmp_path / name / name).mkdir(parents=True)
    exchange(tmp_path / "a", tmp_path / "b")
    assert [names(tmp_path / name) for name in ("a", "b")] == [["b"], ["a"]]
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "a", tmp_path / "nothing")


def test_training_changes_no_default(tmp_path: Path) -> None:
    """The first model of a folder is its default; another one says that it is not, and how to make it so."""
    said = []
    for name in ("topics", "alarms"):
        with whole_model(tmp_path, name) as stage:
            (stage / name / MANIFEST).touch()
        said.append(default_line(tmp_path, name))
    assert served_models(tmp_path, "") == ["topics", "alarms"]
    assert said[0].startswith("topics is the default model")
    assert said[1].startswith("topics stays the default model. Run `coldframe models --default alarms`")
