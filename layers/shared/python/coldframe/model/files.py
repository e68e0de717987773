"""Where the parts of a bundle are, and how its files are read.

encoders/NAME/   an encoder: its graph, tokenizer and golden vectors
NAME/            a model trained on one of them: heads, estimator, report
"""

import mmap
from pathlib import Path

from coldframe.errors import BundleCorrupt, BundleMissing

ENCODERS = "encoders"
MANIFEST = "manifest.json"
ENCODER = "encoder.ort"
TOKENIZER = "tokenizer.json"
VOCABULARY = "vocabulary.txt"
PIECES = "pieces.bin"  # of encoders with a Unigram tokenizer
GOLDEN = "golden.json"
ANSWERS = "answers.json"
ESTIMATOR = "estimator.bin"
CENTROIDS = "centroids"  # a folder, like those of the heads
REBUILD = "Run `coldframe build` again, or `coldframe train` for a model of your own."
AUTO = "auto"  # the head that is estimator and encoder together
HEAD_NAMES = ("logreg", "rf", "hgb", "mlp")


def encoder_folder(model_dir: Path, name: str) -> Path:
    """The folder of an encoder."""
    return model_dir / ENCODERS / name


def model_folder(model_dir: Path, name: str) -> Path:
    """The folder of a model."""
    return model_dir / name


def built_models(model_dir: Path) -> list[str]:
    """Names of the models in a folder, sorted."""
    return sorted(path.parent.name for path in model_dir.glob(f"[!.]*/{MANIFEST}"))


def served_models(model_dir: Path, setting: str) -> list[str]:
    """Names of the models to serve, the default first: those of the setting, else all that are built.

    Raises BundleMissing when there is none.
    """
    named = [name.strip() for name in setting.split(",") if name.strip()] or built_models(model_dir)
    if not named:
        raise BundleMissing(f"{model_dir} has no model. {REBUILD}")
    return list(dict.fromkeys(named))


def check_trained_on(model_dir: Path, model: str, encoder: str, trained_on: str, found: str) -> None:
    """Raises BundleCorrupt unless the version of an encoder that was found is the model's own."""
    if found != trained_on:
        raise BundleCorrupt(
            f"The model {model!r} was trained on {encoder} of version {trained_on[:15]}…;"
            f" {model_dir} has {found[:15]}…. Train the model again."
        )


def head_folder(name: str) -> str:
    """Folder with the arrays of the head `name`, relative to its model."""
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
