"""A folder of files that belong together appears whole, or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coldframe.model.files import ENCODERS, encoder_folder, keep_default, model_folder


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """An empty folder to fill; it takes the place of `target` when the block ends without an error.

    After an error, or when the process is killed inside the block, `target` is as it was before.
    """
    with _beside(target) as scratch:
        made = scratch / "new"
        made.mkdir()
        yield made
        _replace(target, made, scratch)


@contextmanager
def whole_model(model_dir: Path, name: str) -> Iterator[Path]:
    """A folder with the encoders of `model_dir`, and an empty one in it: the model `name`, to be filled.

    There it can be tried before anybody else sees it. It takes the place of the model `name` in `model_dir`
    when the block ends without an error. The default model of the folder stays the default.
    """
    with _beside(model_dir / name) as scratch:
        (scratch / ENCODERS).symlink_to((model_dir / ENCODERS).resolve())
        made = model_folder(scratch, name)
        made.mkdir()
        yield scratch
        keep_default(model_dir, name)
        _replace(model_folder(model_dir, name), made, scratch)


@contextmanager
def whole_encoder(model_dir: Path, name: str) -> Iterator[Path]:
    """The same for an encoder."""
    with _beside(model_dir / name) as scratch:
        made, target = encoder_folder(scratch, name), encoder_folder(model_dir, name)
        made.mkdir(parents=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        yield scratch
        _replace(target, made, scratch)


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
        yield Path(scratch)


def _replace(target: Path, made: Path, scratch: Path) -> None:
    replaced = scratch / ".old"
    if target.exists():
        target.rename(replaced)
    try:
        made.rename(target)
    except OSError:
        if replaced.exists():
            replaced.rename(target)
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
