"""Original weights to an fp32 ONNX graph, by Optimum's exporter."""

import warnings
from pathlib import Path

import transformers
from optimum.exporters.onnx import export
from transformers import BertModel

from layers.model.graph import LeanEncoder, LeanOnnxConfig

_OPSET = 20  # the first with Gelu as one operation


def load_original(weights: Path) -> BertModel:
    """The original model, as published."""
    transformers.logging.set_verbosity_error()
    return BertModel.from_pretrained(weights, attn_implementation="eager").eval()


def export_fp32(weights: Path, target: Path, layers: int | None = None) -> None:
    """Writes `LeanEncoder` with the original weights to `target`. layers: only the first so many."""
    original = load_original(weights)
    with warnings.catch_warnings():
        # Optimum exports through TorchScript, which torch announces to retire.
        warnings.simplefilter("ignore")
        config = LeanOnnxConfig(original.config, task="feature-extraction")
        export(LeanEncoder(original, layers).eval(), config, target, opset=_OPSET)
