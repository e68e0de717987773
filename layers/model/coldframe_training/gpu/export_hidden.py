"""Original weights to an fp32 ONNX graph in the form that onnxruntime's fusions look for.

It is another form than `coldframe_training.encoder_build.graph` has: rows of several lengths share a pass, so
there is an attention mask, and query, key and value are three products, which the fusion makes one of.
"""

import warnings
from pathlib import Path

import torch
from optimum.exporters.onnx import export
from optimum.exporters.onnx.config import TextEncoderOnnxConfig
from optimum.utils import NormalizedTextConfig
from torch import Tensor
from transformers import BertConfig, PreTrainedModel

from coldframe_training.encoder_build.export import load_original
from coldframe_training.files.errors import EncoderRefused

IDS, MASK, HIDDEN = "input_ids", "attention_mask", "hidden"
# One with which all fusions happen; from 18 on, shape inference before them fails on reductions.
OPSET = 17


class MaskedEncoder(PreTrainedModel):
    """Token ids of rows of several lengths, and which of them are a row's own, to last hidden states."""

    config_class = BertConfig

    def __init__(self, original: PreTrainedModel) -> None:
        super().__init__(original.config)
        self.original = original

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:  # (B, T) -> (B, T, d)
        output = self.original(input_ids, attention_mask, token_type_ids=torch.zeros_like(input_ids))
        return {HIDDEN: output.last_hidden_state}


class MaskedOnnxConfig(TextEncoderOnnxConfig):
    """Facts that Optimum needs to export `MaskedEncoder`."""

    NORMALIZED_CONFIG_CLASS = NormalizedTextConfig

    @property
    def inputs(self) -> dict[str, dict[int, str]]:
        return {IDS: {0: "rows", 1: "tokens"}, MASK: {0: "rows", 1: "tokens"}}

    @property
    def outputs(self) -> dict[str, dict[int, str]]:
        return {HIDDEN: {0: "rows", 1: "tokens"}}


def export_hidden(weights: Path, target: Path) -> BertConfig:
    """Writes `MaskedEncoder` with the original weights to `target`. Returns the model's configuration.

    Raises EncoderRefused for another kind of model than BERT.
    """
    original = load_original(weights)
    if original.config.model_type != "bert":
        raise EncoderRefused(
            f"{weights} holds a model of the kind {original.config.model_type!r}. Expected 'bert': no other"
            " kind's graph is fused for the GPU here. Serve this encoder on CPUs."
        )
    encoder = MaskedEncoder(original).eval()
    with warnings.catch_warnings():
        # Optimum exports through TorchScript, which torch announces to retire.
        warnings.simplefilter("ignore")
        export(encoder, MaskedOnnxConfig(original.config, task="feature-extraction"), target, opset=OPSET)
    return original.config
