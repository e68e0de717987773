"""20 Newsgroups to the four heads: `coldframe build --train`.

Calibrate the encoder on training texts, embed everything with the int8 encoder
that will be served, train, convert, prove that the converted heads agree with
the trained ones, and write `heads/`.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupShuffleSplit
from tqdm import tqdm

from coldframe.model.bundle import ENCODER, HeadFacts
from coldframe.model.encoder import Embeddings
from coldframe.model.heads import load_head
from coldframe.model.tokenizer import TextWindows
from coldframe.text import normalise
from layers.model.build import ENCODER_FACTS, HeadMetrics, build_encoder, weights_argument, write_tokenizer
from layers.model.convert import CONVERTERS
from layers.model.data import Split, load_split, threads_of
from layers.model.embed import embed
from layers.model.export import export_fp32
from layers.model.head_trainers import CHOSEN, SEED, Estimator, accuracy, build_estimator
from layers.model.paths import CACHE, CALIBRATION, HEADS, METRICS
from layers.model.quantize import measure_ranges

_CALIBRATION_TEXTS = 200  # of each kind
_MIN_AGREEMENT = 0.999
_MAX_DIFFERENCE = 1e-3


class Embedded(msgspec.Struct, frozen=True):
    """One split, embedded."""

    full: Embeddings
    stripped: Embeddings
    target: NDArray[np.int64]


def main(weights: Path) -> None:
    """Writes calibration, heads and metrics to `layers/model/heads`."""
    train, test = load_split("train"), load_split("test")
    folder = CACHE / "encoder"
    graph = prepare_encoder(weights, train, folder)
    train_set = embed_split("train", train, folder, graph)
    test_set = embed_split("test", test, folder, graph)
    heads = {}
    for name in tqdm(CHOSEN, desc="train heads", unit="head"):
        validation = validate(build_estimator(name, CHOSEN[name]), train_set, threads_of(train.full))
        estimator = build_estimator(name, CHOSEN[name]).fit(*both_kinds(train_set))
        write_head(name, estimator)
        check_agreement(name, estimator, test_set)
        heads[name] = HeadFacts(
            accuracy_stripped=round(accuracy(estimator, test_set.stripped, test_set.target), 4),
            accuracy_full=round(accuracy(estimator, test_set.full, test_set.target), 4),
            validation_stripped=round(validation, 4),
            parameters=CHOSEN[name],
        )
        tqdm.write(f"{name}: {heads[name]}")
    best = max(heads, key=lambda name: heads[name].validation_stripped)
    write_json(METRICS, HeadMetrics(train.labels, best, graph, heads))


def prepare_encoder(weights: Path, train: Split, folder: Path) -> str:
    """Puts the calibrated int8 encoder and its tokenizer into `folder`. Returns the digest of its graph."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(weights, folder)
    with tempfile.TemporaryDirectory() as scratch:
        fp32 = Path(scratch) / "fp32.onnx"
        export_fp32(weights, fp32)
        rows = calibration_rows(train, folder)
        ranges = measure_ranges(fp32, tqdm(rows, desc="calibrate", unit="text"))
    write_json(CALIBRATION, ranges)
    return build_encoder(weights, folder / ENCODER)


def calibration_rows(train: Split, folder: Path) -> list[NDArray[np.int64]]:
    """First windows of training documents, half as posted and half stripped, each (1, T)."""
    order = np.random.default_rng(SEED).permutation(len(train.full))[:_CALIBRATION_TEXTS]
    texts = [normalise(kind[i]) for kind in (train.full, train.stripped) for i in order]
    windows = TextWindows(folder, msgspec.structs.replace(ENCODER_FACTS, max_windows=1)).cut(texts)
    return [np.array(text, dtype=np.int64) for text in windows]


def embed_split(name: str, split: Split, folder: Path, graph: str) -> Embedded:
    """Both kinds of a split, by the encoder in `folder` with the digest `graph`."""
    full = embed(f"{name}-full", split.full, folder, ENCODER_FACTS, graph)
    stripped = embed(f"{name}-stripped", split.stripped, folder, ENCODER_FACTS, graph)
    return Embedded(full, stripped, split.target)


def both_kinds(
    data: Embedded, rows: NDArray[np.int64] | slice = slice(None)
) -> tuple[Embeddings, NDArray[np.int64]]:
    """Every document twice, as posted and stripped: a head then does well on both."""
    return np.concatenate([data.stripped[rows], data.full[rows]]), np.tile(data.target[rows], 2)


def held_out_split(threads: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to train on, and those of a fifth of the discussions to validate on."""
    splitter = GroupShuffleSplit(1, test_size=0.2, random_state=SEED)
    return next(splitter.split(threads, groups=threads))  # type: ignore[no-any-return]


def validate(estimator: Estimator, data: Embedded, threads: NDArray[np.int64]) -> float:
    """Accuracy on the stripped documents held out, trained on the others."""
    rows, held_out = held_out_split(threads)
    estimator.fit(*both_kinds(data, rows))
    return accuracy(estimator, data.stripped[held_out], data.target[held_out])


def write_head(name: str, estimator: Estimator) -> None:
    """`heads/<name>.npz`, readable without pickle."""
    np.savez(HEADS / f"{name}.npz", **CONVERTERS[name](estimator))  # type: ignore[arg-type]


def check_agreement(name: str, estimator: Estimator, test: Embedded) -> None:
    """Proves the converted head on the whole test split. Raises ValueError when it differs."""
    served = load_head(HEADS.parent, name).predict(test.stripped)
    trained = estimator.predict_proba(test.stripped)
    agreement = float((served.argmax(axis=1) == trained.argmax(axis=1)).mean())
    difference = float(np.abs(served - trained).max())
    tqdm.write(
        f"{name}: converted head agrees on {agreement:.4%} of the test split, largest |Δp| {difference:.1e}"
    )
    if agreement < _MIN_AGREEMENT or difference > _MAX_DIFFERENCE:
        raise ValueError(f"The converted head {name} is not the trained one.")


def write_json(path: Path, value: Any) -> None:
    """Indented JSON, so that a change can be read."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


if __name__ == "__main__":
    main(weights_argument(sys.argv[1:]))
