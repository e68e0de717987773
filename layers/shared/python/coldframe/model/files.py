"""Names of a bundle's files, and how they are read."""

import mmap
from pathlib import Path

from coldframe.errors import BundleMissing

MANIFEST = "manifest.json"
ENCODER = "encoder.ort"
TOKENIZER = "tokenizer.json"
VOCABULARY = "vocabulary.txt"
PIECES = "pieces.bin"  # of encoders with a Unigram tokenizer
GOLDEN = "golden.json"
ESTIMATOR = "estimator.bin"
REBUILD = "Run `coldframe build` to make the bundle again."
AUTO = "auto"  # the head that is estimator and encoder together
HEAD_NAMES = ("logreg", "rf", "hgb", "mlp")


def head_folder(name: str) -> str:
    """Folder with the arrays of the head `name`, relative to the bundle."""
    return f"heads/{name}"


def map_file(folder: Path, name: str) -> mmap.mmap:
    """Content of one file, mapped instead of read. Raises BundleMissing when it is not there, or empty."""
    try:
        with (folder / name).open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as exc:  # ValueError: an empty file
        raise BundleMissing(f"{folder} has no readable {name}. {REBUILD}") from exc


def read_file(folder: Path, name: str) -> bytes:
    """Content of one file. Raises BundleMissing when it is not there."""
    try:
        return (folder / name).read_bytes()
    except OSError as exc:
        raise BundleMissing(
            f"{folder} has no readable {name} ({exc.strerror}). Run `coldframe build`, or point"
            " COLDFRAME_MODEL_DIR at a built bundle."
        ) from exc
