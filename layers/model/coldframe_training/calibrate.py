"""Ranges of the default encoder's activations, measured once on training texts: `encoder/calibration.json`.

    COLDFRAME_DATA=FOLDER PYTHONPATH=layers/model:layers/shared/python:local .venv-build/bin/python -m \
        coldframe_training.calibrate

The ranges belong to the encoder, not to the labels: training leaves them alone. With other ranges the
encoder is another one, so that `make build` and `make train` have to follow.
"""

import sys
import tempfile
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from coldframe.model.tokenizer import TextWindows, normalise
from coldframe.progress import Progress
from coldframe_training.encoder_build.export import export_fp32
from coldframe_training.encoder_build.make_encoder import ENCODER_FACTS
from coldframe_training.encoder_build.quantize import measure_ranges
from coldframe_training.encoder_build.tokenizer_files import write_tokenizer
from coldframe_training.encoder_build.weights import weights_argument
from coldframe_training.files.json_files import write_json
from coldframe_training.files.paths import CALIBRATION
from coldframe_training.training_data.data import Split, load_split
from coldframe_training.training_data.samples import SEED

_TEXTS = 200  # of each kind


def main(weights: Path) -> None:
    """Writes the ranges anew."""
    train = load_split("train")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_tokenizer(weights, folder)
        export_fp32(weights, folder / "fp32.onnx")
        rows = calibration_rows(train, folder)
        ranges = measure_ranges(folder / "fp32.onnx", Progress(rows, desc="calibrate", unit="text"))
    write_json(CALIBRATION, ranges)


def calibration_rows(train: Split, folder: Path) -> list[NDArray[np.int64]]:
    """First windows of training documents, half as posted and half stripped, each (1, T)."""
    order = np.random.default_rng(SEED).permutation(len(train.full))[:_TEXTS]
    texts = [normalise(kind[i]) for kind in (train.full, train.stripped) for i in order]
    windows = TextWindows(folder, msgspec.structs.replace(ENCODER_FACTS, max_windows=1)).cut(texts)
    return [np.array(text, dtype=np.int64) for text in windows]


if __name__ == "__main__":
    main(weights_argument(sys.argv[1:]))
