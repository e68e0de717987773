"""Places of the parts of a bundle, and functions that read its files.

encoders/NAME/   an encoder: its graph, tokenizer and golden vectors
NAME/            a model trained on one of them: heads, estimator, report
default          the name of the default model
"""

import mmap
import os
from pathlib import Path

from coldframe.errors import BundleCorrupt, BundleMissing
from coldframe.graphs.graph import GraphFile

ENCODERS = "encoders"
DEFAULT = "default"
PREVIOUS = ".previous"  # replaced models, one for each name
MANIFEST = "manifest.json"
ENCODER = "encoder.ort"
TOKENIZER = "tokenizer.json"
VOCABULARY = "vocabulary.txt"
PIECES = "pieces.bin"  # of encoders with a Unigram tokenizer
GOLDEN = "golden.json"
ANSWERS = "answers.json"
ESTIMATOR = "estimator.bin"
CENTROIDS = "centroids.bin"
REBUILD = "Run `coldframe build` again, or `coldframe train` for a model of your own."
AUTO = "auto"  # the head that is estimator and encoder together
ENSEMBLE = "ensemble"  # the head that is the weighted mean of others
HEAD_NAMES = ("logreg", "rf", "hgb", "mlp")


def encoder_folder(model_dir: Path, name: str) -> Path:
    """The folder of an encoder."""
    return model_dir / ENCODERS / name


def encoder_graph(path: Path, threads: int) -> GraphFile:
    """Function that opens an encoder's graph."""
    return GraphFile(path, "embedding", "f", threads=threads)


def model_folder(model_dir: Path, name: str) -> Path:
    """The folder of a model."""
    return model_dir / name


def previous_folder(model_dir: Path, name: str) -> Path:
    """The folder of the model that had this name before the present one."""
    return model_dir / PREVIOUS / name


def built_models(model_dir: Path) -> list[str]:
    """Names of the models in a folder, sorted; empty for a missing folder."""
    try:
        folders = list(model_dir.iterdir())
    except OSError:
        return []
    return sorted(path.name for path in folders if path.name[0] != "." and (path / MANIFEST).is_file())


def served_models(model_dir: Path, setting: str) -> list[str]:
    """Names of the models to serve, the default first. All entry points choose their default model here.

    setting: names, separated by commas. Without any, all models of the folder are served; the default is the
    only model, else the recorded one. Only then are files read.
    Raises BundleMissing when the folder has no model, or several and no record.
    """
    names = [name for part in setting.split(",") if (name := part.strip())]
    if names:
        return list(dict.fromkeys(names))
    built = built_models(model_dir)
    if not built:
        raise BundleMissing(no_models(model_dir))
    default = built[0] if len(built) == 1 else _recorded(model_dir, built)
    return [default, *(name for name in built if name != default)]


def recorded_default(model_dir: Path) -> str:
    """The name in the record of the default model; empty without a record."""
    try:
        return (model_dir / DEFAULT).read_text().strip()
    except OSError:
        return ""


def record_default(model_dir: Path, name: str) -> None:
    """Records the default model of a folder. A reader sees the old record or the new one, whole."""
    path = model_dir / f".{DEFAULT}-{os.getpid()}"
    path.write_text(f"{name}\n")
    path.replace(model_dir / DEFAULT)


def keep_default(model_dir: Path, added: str) -> None:
    """Records `added` as the default model before it appears in a folder without a record.

    So a folder's first model becomes its default, and later ones never do by being added.
    """
    built = built_models(model_dir)
    if len(built) < 2 and not recorded_default(model_dir):
        record_default(model_dir, (built or [added])[0])


def no_models(model_dir: Path) -> str:
    """Explains why a folder has no model, and what to do."""
    if (model_dir / MANIFEST).is_file():
        return (
            f"{model_dir} is a model, expected the folder that holds encoders and models."
            f" Give {model_dir.parent} as the folder, and {model_dir.name} as the model."
        )
    return f"{model_dir} has no model. {REBUILD}"


def no_such_model(model_dir: Path, name: str) -> str:
    """Explains that no model of the folder has this name, and what to do."""
    built = built_models(model_dir)
    if not built:
        return no_models(model_dir)
    return (
        f"{model_dir} has no model {name!r}. Models: {', '.join(built)}. Name one of them,"
        f" or make {name!r} with `coldframe train --name`."
    )


def _recorded(model_dir: Path, built: list[str]) -> str:
    recorded = recorded_default(model_dir)
    if recorded in built:
        return recorded
    problem = f"names {recorded!r}, which is not there" if recorded else "is missing"
    raise BundleMissing(
        f"{model_dir} has {len(built)} models: {', '.join(built)}. The file {DEFAULT!r}, which says which one"
        f" answers, {problem}. Name a model in COLDFRAME_MODELS, or run `coldframe models --default NAME`."
    )


def check_trained_on(model_dir: Path, model: str, encoder: str, trained_on: str, version: str) -> None:
    """Raises BundleCorrupt unless the encoder has the version that the model was trained on."""
    if version != trained_on:
        raise BundleCorrupt(
            f"The model {model!r} was trained on {encoder} of version {trained_on[:15]}…;"
            f" {model_dir} has {version[:15]}…. Train the model again."
        )


def head_file(name: str) -> str:
    """File with the weights of the head `name`, relative to its model."""
    return f"heads/{name}.bin"


def map_file(folder: Path, name: str) -> mmap.mmap:
    """Content of one file, mapped instead of read. Raises BundleMissing for a missing or empty file.

    The C library of `coldframe.graphs` needs a writable map; writes stay in this process.
    """
    try:
        with (folder / name).open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError) as exc:  # ValueError: an empty file
        raise BundleMissing(f"{folder} has no readable {name}. {REBUILD}") from exc


def read_file(folder: Path, name: str) -> bytes:
    """Content of one file. Raises BundleMissing for a missing file."""
    try:
        return (folder / name).read_bytes()
    except OSError as exc:
        if name == MANIFEST and folder.parent.name != ENCODERS and not folder.exists():
            raise BundleMissing(no_such_model(folder.parent, folder.name)) from exc
        raise BundleMissing(
            f"{folder} has no readable {name} ({exc.strerror}). Run `coldframe build`, or point"
            " COLDFRAME_MODEL_DIR at a built bundle."
        ) from exc
