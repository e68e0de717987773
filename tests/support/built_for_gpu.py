"""Builds the default encoder of a folder for GPUs, and writes what is in its graphs to `graphs.json` there.

Runs in the build environment: `python -m tests.support.built_for_gpu MODELS`.
"""

import json
import sys
from math import prod
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto

from coldframe.gpu.files import gpu_encoder
from coldframe.gpu.start import GRAPHS
from coldframe.model.files import encoder_folder
from coldframe_training.build_gpu import build_for_gpu
from coldframe_training.encoder_build.weights import find_weights
from coldframe_training.files.paths import CACHE, DEFAULT_ENCODER


def describe(path: Path) -> dict[str, Any]:
    """Operations in their order, inputs, outputs and weights of a graph."""
    graph = onnx.load(path, load_external_data=False).graph
    weights = [tensor for tensor in graph.initializer if tensor.data_type != TensorProto.INT64]
    outside = {entry.value for tensor in weights for entry in tensor.external_data if entry.key == "location"}
    known = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer} | {""}
    is_sorted = True
    for node in graph.node:
        is_sorted = is_sorted and set(node.input) <= known
        known |= set(node.output)
    return {
        "operations": [node.op_type for node in graph.node],
        "inputs": {value.name: _shape(value) for value in graph.input},
        "outputs": {value.name: _shape(value) for value in graph.output},
        "weights": [TensorProto.DataType.Name(tensor.data_type) for tensor in weights],
        "sizes": [prod(tensor.dims) for tensor in weights],
        "outside": sorted(outside),
        "is_sorted": is_sorted,
    }


def _shape(value: Any) -> list[Any]:
    tensor = value.type.tensor_type
    dimensions = [part.dim_param or part.dim_value for part in tensor.shape.dim]
    return [TensorProto.DataType.Name(tensor.elem_type), dimensions]


if __name__ == "__main__":
    models = Path(sys.argv[1])
    build_for_gpu(find_weights(None, CACHE / "weights"), models)
    folder = encoder_folder(models, gpu_encoder(DEFAULT_ENCODER))
    (models / "graphs.json").write_text(json.dumps({name: describe(folder / name) for name in GRAPHS}))
