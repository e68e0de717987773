"""A new project: a folder with a template, a function, a table, tests and a pipeline."""

import json
import re
import shutil
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from coldframe import __version__
from coldframe.errors import ColdframeError
from coldframe_local.paths import shipped_file

WHEEL = f"coldframe-{__version__}-py3-none-any.whl"
_FILES = Path(__file__).with_name("files")
_HIDDEN = ("dockerignore", "gitignore", "github")
"""Names without their dot, so that neither git nor Docker reads them here."""
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


class CannotMakeProject(ColdframeError):
    """There is no place for the project, or its name cannot be used."""


def write_project(folder: Path, wheel: Path | None) -> list[Path]:
    """Writes a project into a folder, which is made; returns its files. Raises CannotMakeProject.

    wheel: copied into the project. None: the user copies it.
    """
    check_name(folder.name)
    check_empty(folder)
    try:
        files = [_write(folder, path) for path in _sources()]
        files.append(_copy(shipped_file("data/tickets.csv"), folder / "data" / "tickets.csv"))
        if wheel is not None:
            _copy(wheel, folder / "wheels" / WHEEL)
    except OSError as exc:
        raise CannotMakeProject(
            f"{folder} cannot be written: {exc.strerror}. Name a folder that you may write to."
        ) from exc
    return sorted(files)


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


def _write(folder: Path, source: Path) -> Path:
    first, *rest = source.relative_to(_FILES).parts
    target = folder.joinpath(f".{first}" if first in _HIDDEN else first, *rest)
    target.parent.mkdir(parents=True, exist_ok=True)
    text = source.read_text(encoding="utf-8")
    target.write_text(text.replace("@NAME@", folder.name).replace("@VERSION@", __version__), encoding="utf-8")
    return target


def _copy(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    return target
