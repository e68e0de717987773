"""Makes what all peers serve: the same weights and the same head, in the forms that they read.

    PYTHONPATH=layers/model:layers/shared/python:local .venv-build/bin/python bench/peers/prepare.py FOLDER

The ONNX encoder is Optimum's documented recipe for a CPU: dynamic int8, per channel.
"""

import shutil
import sys
from pathlib import Path

import joblib
import msgspec
import numpy as np
from optimum.exporters.onnx import main_export
from optimum.onnxruntime import ORTQuantizer
from optimum.onnxruntime.configuration import AutoQuantizationConfig
from sklearn.linear_model import LogisticRegression

from coldframe.model.bundle import load_manifest
from coldframe_training.encoder_build.weights import find_weights
from coldframe_training.files.paths import CACHE, EXAMPLE, MODELS, TRAINED


def main(folder: Path) -> None:
    """Writes `model/` (weights, tokenizer, `onnx/`), `head.npz`, `head.joblib` and `labels.json`."""
    weights = find_weights(None, CACHE / "weights")
    model = folder / "model"
    shutil.rmtree(model, ignore_errors=True)
    main_export(str(weights), model / "onnx", task="feature-extraction")
    recipe = AutoQuantizationConfig.avx512_vnni(is_static=False, per_channel=True)
    ORTQuantizer.from_pretrained(model / "onnx").quantize(recipe, model / "onnx")
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        shutil.move(model / "onnx" / name, model / name)
    for name in ("config.json", "model.safetensors"):
        shutil.copy(weights / name, model / name)
    labels = load_manifest(MODELS, EXAMPLE).labels
    (folder / "labels.json").write_bytes(msgspec.json.encode(labels))
    with np.load(TRAINED / "logreg.npz", allow_pickle=False) as arrays:
        weight, bias = arrays["weight"], arrays["bias"]
    np.savez(folder / "head.npz", weight=weight, bias=bias)
    head = LogisticRegression()
    head.coef_, head.intercept_ = weight.T.astype(np.float64), bias.astype(np.float64)
    head.classes_, head.n_features_in_ = np.array(labels), len(weight)
    joblib.dump(head, folder / "head.joblib")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
