"""A new project: a folder with a template, a function, a table, tests and a pipeline."""

import json
import re
import shutil
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

from coldframe import __version__
from coldframe.errors import ColdframeError
from coldframe_local.new_project.encoder import install_into
from coldframe_local.paths import shipped_file

WHEEL = f"coldframe-{__version__}-py3-none-any.whl"
_FILES = Path(__file__).with_name("files")
_HIDDEN = ("dockerignore", "gitignore", "github")
"""Names without their dot, so that neither git nor Docker reads them here."""
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


class CannotMakeProject(ColdframeError):
    """There is no place for the project, or its name cannot be used."""


def write_project(folder: Path, wheel: Path | None, encoder: Path | None = None) -> int:
    """Writes a project into a folder, which is made; returns the number of its files.

    The folder appears with all of them, or stays as it was.
    wheel: copied into the project; None: the user copies it. encoder: a packed one, to be installed.
    Raises CannotMakeProject, and the errors of `install_into`.
    """
    check_name(folder.name)
    check_empty(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".new-", dir=folder.parent) as scratch:
            stage = Path(scratch) / folder.name
            for source in _sources():
                _write(stage, source)
            _copy(shipped_file("data/tickets.csv"), stage / "data" / "tickets.csv")
            files = sum(path.is_file() for path in stage.rglob("*"))
            if wheel is not None:
                _copy(wheel, stage / "wheels" / WHEEL)
            if encoder is not None:
                install_into(stage / "models", encoder)
            stage.rename(folder)
    except OSError as exc:
        raise CannotMakeProject(
            f"{folder} cannot be written: {exc.strerror}. Name a folder that you may write to."
        ) from exc
    return files


def check_name(name: str) -> None:
    """Raises CannotMakeProject for a name that CloudFormation or Docker would refuse."""
    if not _NAME.fullmatch(name):
        words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-0123456789") or "my-service"
        raise CannotMakeProject(
            f"The name {name!r} cannot be used. Expected lower-case letters, digits and '-', at most 40,"
            f" with a letter first. Take {words[:40]!r}, for example."
        )


def check_empty(folder: Path) -> None:
    """Raises CannotMakeProject where a file would be in the way."""
    if folder.is_file():
        raise CannotMakeProject(f"{folder} is a file. Name a folder that does not exist yet.")
    if folder.is_dir() and any(folder.iterdir()):
        raise CannotMakeProject(
            f"{folder} is not empty. Name a folder that does not exist yet, or an empty one."
        )


def installed_wheel() -> Path | None:
    """The wheel that this Coldframe was installed from; None where pip did not record it, or it is gone.

    https://packaging.python.org/en/latest/specifications/direct-url/, read 2026-11-25.
    """
    try:
        record = distribution("coldframe").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    address = urlsplit(json.loads(record)["url"]) if record else None
    path = Path(unquote(address.path)) if address and address.scheme == "file" else None
    return path if path and path.name == WHEEL and path.is_file() else None


def _sources() -> list[Path]:
    """Files to write. pip compiles modules of a package, so these folders may have byte code."""
    return sorted(path for path in _FILES.rglob("*") if path.is_file() and path.suffix != ".pyc")


def _write(folder: Path, source: Path) -> None:
    first, *rest = source.relative_to(_FILES).parts
    target = folder.joinpath(f".{first}" if first in _HIDDEN else first, *rest)
    target.parent.mkdir(parents=True, exist_ok=True)
    text = source.read_text(encoding="utf-8")
    target.write_text(text.replace("@NAME@", folder.name).replace("@VERSION@", __version__), encoding="utf-8")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
