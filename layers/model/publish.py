"""A folder of files that belong together appears whole, or not at all."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """An empty folder to fill; it takes the place of `target` when the block ends without an error.

    After an error, or when the process is killed inside the block, `target` is as it was before.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
        made = Path(scratch) / "new"
        made.mkdir()
        yield made
        replaced = Path(scratch) / "old"
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
