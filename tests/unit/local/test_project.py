"""Projects of one's own are whole, and written where nothing is in the way."""

import ast
import json
import os
import tomllib
from pathlib import Path

import pytest
import yaml

from coldframe import __version__
from coldframe.errors import BundleCorrupt
from coldframe_local.emulator.template.template import load_template
from coldframe_local.new_project import project
from coldframe_local.new_project.project import WHEEL, CannotMakeProject, write_project


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with a wheel."""
    wheel = tmp_path / WHEEL
    wheel.write_bytes(b"wheel")
    write_project(tmp_path / "my-service", wheel)
    return tmp_path / "my-service"


def test_project_is_small_and_whole(folder: Path) -> None:
    """About fifteen files: a template, a function, a table, settings, tests, a pipeline and a README."""
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert files == {
        ".dockerignore",
        ".github/workflows/check.yml",
        ".gitignore",
        "Dockerfile",
        "Makefile",
        "README.md",
        "data/tickets.csv",
        "function/app.py",
        "pyproject.toml",
        "requirements.txt",
        "samconfig.toml",
        "template.yaml",
        "tests/event.json",
        "tests/test_function.py",
        f"wheels/{WHEEL}",
    }


def test_files_can_be_read(folder: Path) -> None:
    """Each file is well-formed, and no placeholder is left in any."""
    ast.parse((folder / "function" / "app.py").read_text())
    ast.parse((folder / "tests" / "test_function.py").read_text())
    json.loads((folder / "tests" / "event.json").read_text())
    tomllib.loads((folder / "samconfig.toml").read_text())
    tomllib.loads((folder / "pyproject.toml").read_text())
    assert set(yaml.safe_load((folder / ".github/workflows/check.yml").read_text())["jobs"]) == {"check"}
    texts = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert [text for text in texts if "@NAME@" in text or "@VERSION@" in text] == []
    assert "my-service" in (folder / "samconfig.toml").read_text()


def test_requirements_name_the_wheel_by_its_path(folder: Path) -> None:
    """No index is asked for a package of our name, and another release is a change of one line."""
    lines = (folder / "requirements.txt").read_text().splitlines()
    assert [line for line in lines if "coldframe" in line] == [f"./wheels/{WHEEL}[local,train]"]
    versioned = [
        path.name for path in folder.rglob("*") if path.is_file() and __version__ in path.read_text()
    ]
    assert sorted(versioned) == ["README.md", "requirements.txt"]


def test_emulator_reads_the_template(folder: Path) -> None:
    """The function of the project is an image, whose handler is found where the Dockerfile copies it to."""
    template = load_template(folder / "template.yaml", {})
    (function,) = template.functions
    assert function.settings.handler == "app.handler"
    assert function.settings.environ["PYTHONPATH"] == str(folder / "function")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("My Service", "my-service"),
        ("9lives", "lives"),
        ("a_b", "a-b"),
        ("ä", "my-service"),
        ("x" * 41, "x" * 40),
    ],
)
def test_a_bad_name_is_refused(tmp_path: Path, name: str, expected: str) -> None:
    """The error names a similar name that can be used, and nothing is written."""
    with pytest.raises(CannotMakeProject, match=f"Take '{expected}'"):
        write_project(tmp_path / name, None)
    assert list(tmp_path.iterdir()) == []


def test_a_full_folder_stays_as_it_is(tmp_path: Path) -> None:
    """A folder with a file is refused, and so is a file."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "notes.txt").write_text("mine")
    with pytest.raises(CannotMakeProject, match=r"is not empty\. Name a folder that does not exist yet"):
        write_project(tmp_path / "here", None)
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["notes.txt"]
    (tmp_path / "there").write_text("")
    with pytest.raises(CannotMakeProject, match="is a file"):
        write_project(tmp_path / "there", None)


def test_a_file_that_is_no_encoder_leaves_nothing(tmp_path: Path) -> None:
    """The same command with another file works afterwards, also where the folder was there, and empty."""
    (tmp_path / "packed.tar").write_bytes(b"no archive")
    (tmp_path / "mine").mkdir()
    with pytest.raises(BundleCorrupt, match="is not a packed encoder"):
        write_project(tmp_path / "mine", None, tmp_path / "packed.tar")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["mine", "packed.tar"]
    assert write_project(tmp_path / "mine", None) == 14
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "packed.tar"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_named(tmp_path: Path) -> None:
    """A user who may not write gets the folder's name and the reason."""
    tmp_path.chmod(0o500)
    with pytest.raises(CannotMakeProject, match=r"Permission denied\. Name a folder that you may write to"):
        write_project(tmp_path / "mine", None)


class Installed:
    """A distribution with pip's record of where it came from."""

    def __init__(self, record: str | None) -> None:
        self._record = record

    def read_text(self, name: str) -> str | None:
        return self._record if name == "direct_url.json" else None


def test_wheel_is_the_one_that_pip_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel installed by its path is found while it exists; a checkout and an index record none."""
    wheel = tmp_path / WHEEL
    records = [json.dumps({"url": wheel.as_uri()}), json.dumps({"url": tmp_path.as_uri()}), None]
    expected: list[Path | None] = []
    for exists in (False, True):
        if exists:
            wheel.write_bytes(b"")
        for record in records:
            monkeypatch.setattr(project, "distribution", lambda name, record=record: Installed(record))
            expected.append(project.installed_wheel())
    assert expected == [None, None, None, wheel, None, None]
