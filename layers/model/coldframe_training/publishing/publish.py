"""A folder of files that belong together appears whole, or not at all."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coldframe.model.exchange import CannotExchange, exchange
from coldframe.model.files import (
    ENCODERS,
    encoder_folder,
    keep_default,
    model_folder,
    previous_folder,
    recorded_default,
)

_UNFINISHED = ".unfinished"  # how the names of folders end that are being filled
_OLD, _TARGET = "old", "target"  # in such a folder: what is replaced, and the name that it had


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """An empty folder to fill; it takes the place of `target` when the block ends without an error.

    After an error, or when the process is killed, `target` is as it was before, or as it is afterwards.
    """
    with _beside(target) as scratch:
        folder = scratch / "new"
        folder.mkdir()
        yield folder
        _replace(target, folder, scratch)


@contextmanager
def whole_model(model_dir: Path, name: str) -> Iterator[Path]:
    """A folder with the encoders of `model_dir`, and an empty one in it: the model `name`, to be filled.

    There it can be tried before anybody else sees it. It takes the place of the model `name` in `model_dir`
    when the block ends without an error; the model that was there is kept as the previous one. The folder
    keeps its default model.
    """
    with _beside(model_dir / name) as scratch:
        (scratch / ENCODERS).symlink_to((model_dir / ENCODERS).resolve())
        made, target = model_folder(scratch, name), model_folder(model_dir, name)
        made.mkdir()
        yield scratch
        keep_default(model_dir, name)
        if target.exists():
            share_folder(target, previous_folder(model_dir, name))
        _replace(target, made, scratch)


def default_line(models: Path, name: str) -> str:
    """Record the model that answers requests without a model's name, now that this one exists."""
    default = recorded_default(models)
    if default == name:
        return f"{name} is the default model: it answers where no model is named."
    stays = f"{default} stays the default model" if default else "No model is recorded as the default"
    return f"{stays}. Run `coldframe models --default {name}` to have {name} answer where no model is named."


@contextmanager
def whole_encoder(model_dir: Path, name: str) -> Iterator[Path]:
    """The same for an encoder, of which no previous one is kept."""
    with _beside(model_dir / name) as scratch:
        made, target = encoder_folder(scratch, name), encoder_folder(model_dir, name)
        made.mkdir(parents=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        yield scratch
        _replace(target, made, scratch)


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """A folder beside `target`, locked while this process lives; what killed processes left is removed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    outer = _lock(target.parent, fcntl.LOCK_EX)  # nobody removes a folder between its making and its lock
    try:
        for leftover in target.parent.glob(f".*{_UNFINISHED}"):
            _clear(leftover)
        scratch = Path(tempfile.mkdtemp(_UNFINISHED, f".{target.name}-", target.parent))
        inner = _lock(scratch, fcntl.LOCK_EX)
    finally:
        os.close(outer)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch)
        os.close(inner)


def _lock(folder: Path, kind: int) -> int:
    """A descriptor that holds a lock until it is closed. Raises BlockingIOError as `flock` does."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, kind)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _clear(leftover: Path) -> None:
    """Removes a folder whose process is gone; what that process had put aside gets its name back first."""
    try:
        descriptor = _lock(leftover, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    try:
        if (leftover / _OLD).exists() and (leftover / _TARGET).exists():
            target = leftover.parent / (leftover / _TARGET).read_text()
            if not target.exists():
                (leftover / _OLD).rename(target)
        shutil.rmtree(leftover)
    finally:
        os.close(descriptor)


def _replace(target: Path, folder: Path, scratch: Path) -> None:
    if not target.exists():
        folder.rename(target)
        return
    try:
        exchange(folder, target)
    except CannotExchange:
        _replace_in_two_steps(target, folder, scratch)


def _replace_in_two_steps(target: Path, folder: Path, scratch: Path) -> None:
    """Where folders cannot be exchanged. Killed between the steps, the next run gives the name back."""
    (scratch / _TARGET).write_text(str(target.relative_to(scratch.parent)))
    target.rename(scratch / _OLD)
    try:
        folder.rename(target)
    except OSError:
        (scratch / _OLD).rename(target)
        raise


def copy_into(folder: Path, source: Path) -> None:
    """A copy of one file, under its own name."""
    shutil.copyfile(source, folder / source.name)


def share_folder(source: Path, target: Path) -> None:
    """The files of one folder in another one: the same ones where the disk allows it, else copies."""

    def share(one: str, other: str) -> None:
        try:
            os.link(one, other)
        except OSError:
            shutil.copyfile(one, other)

    with whole_folder(target) as folder:
        shutil.copytree(source, folder, copy_function=share, dirs_exist_ok=True)
