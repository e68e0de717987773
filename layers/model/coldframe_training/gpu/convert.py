"""An fp32 graph to two fp16 graphs for CUDA: one that computes padding, and one that removes it first.

Fusion, half precision and packing are onnxruntime's own tools. Packing mode is undocumented; what it does is
in https://github.com/microsoft/onnxruntime/pull/14847, read 2026-11-21.
"""

import logging
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnx import ModelProto
from onnxruntime.transformers.convert_to_packing_mode import (
    PackingMode,
)  # its package puts the folder on the path
from onnxruntime.transformers.fusion_options import FusionOptions
from onnxruntime.transformers.onnx_model import OnnxModel
from onnxruntime.transformers.optimizer import optimize_model
from transformers import BertConfig

from coldframe_training.encoder_build.encoder_folder import Pooling
from coldframe_training.files.errors import EncoderRefused
from coldframe_training.gpu.pooling import append_pooling


def fuse(fp32: Path, config: BertConfig) -> OnnxModel:
    """The graph with its layers fused, in fp16, its inputs int32. Raises EncoderRefused."""
    logging.getLogger("fusion_base").setLevel(logging.ERROR)
    model: Any = optimize_model(
        str(fp32),
        "bert",
        num_heads=config.num_attention_heads,
        hidden_size=config.hidden_size,
        optimization_options=FusionOptions("bert"),
        opt_level=0,  # fusions of these tools alone: the runtime's own ones are for this machine's processor
        use_gpu=True,
    )
    model.change_graph_inputs_to_int32()
    model.convert_float_to_float16(keep_io_types=False)
    model.topological_sort(is_deterministic=True)
    layers = config.num_hidden_layers
    expected = {
        "EmbedLayerNormalization": 1,
        "Attention": layers,
        "SkipLayerNormalization": 2 * layers,
        "BiasGelu": layers,
    }
    _check(model.model, expected, "Fusion")
    return model


def make_padded(model: OnnxModel, pooling: Pooling) -> ModelProto:
    """The graph that computes all positions of a pass, padding among them: int32 (B, T) to float32 (B, d)."""
    padded = _copy(model.model)
    append_pooling(padded.graph, pooling)
    return padded


def make_packed(model: OnnxModel, config: BertConfig, pooling: Pooling) -> ModelProto:
    """The graph that computes the rows' own tokens only, of the same inputs, to the same output."""
    packing = PackingMode(OnnxModel(_copy(model.model)))
    packing.convert(use_symbolic_shape_infer=False)
    packing.model.topological_sort(is_deterministic=True)
    packed: ModelProto = packing.model.model
    expected = {"PackedAttention": config.num_hidden_layers, "RemovePadding": 1, "RestorePadding": 1}
    _check(packed, {**expected, "Attention": 0}, "Packing")
    append_pooling(packed.graph, pooling)
    return packed


def _copy(model: ModelProto) -> ModelProto:
    copied = ModelProto()
    copied.CopyFrom(model)
    return copied


def _check(model: ModelProto, expected: Mapping[str, int], step: str) -> None:
    counted = Counter(node.op_type for node in model.graph.node)
    counts = {kind: counted[kind] for kind in expected}
    if counts != dict(expected):
        raise EncoderRefused(
            f"{step} does not work for this encoder: its graph has the operations {counts}; expected"
            f" {dict(expected)}. The model is of another kind, or onnxruntime's tools have changed."
        )
