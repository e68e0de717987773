"""Pooling and normalisation inside the graph: of a pass, only (B, d) numbers come back from the GPU."""

import numpy as np
from onnx import GraphProto, TensorProto, helper, numpy_helper

from coldframe_training.encoder_build.encoder_folder import Pooling
from coldframe_training.encoder_build.graph import OUTPUT
from coldframe_training.gpu.export_hidden import HIDDEN, MASK


def append_pooling(graph: GraphProto, pooling: Pooling) -> None:
    """Replaces the output, fp16 hidden states (B, T, d), by float32 embeddings (B, d) of length 1.

    The sum over tokens is one product, whose terms the GPU adds up in fp32; its length is set in fp32.
    """
    (hidden,) = graph.output
    axis = numpy_helper.from_array(np.array([1], dtype=np.int64), "pooling_axis")
    graph.initializer.append(axis)
    nodes = _sum(axis.name) if pooling == "mean" else _first(graph)
    graph.node.extend(
        [
            *nodes,
            helper.make_node("Cast", ["pooled_half"], ["pooled"], "pooling_cast", to=TensorProto.FLOAT),
            helper.make_node(
                "ReduceL2", ["pooled"], ["pooled_length"], "pooling_length", axes=[1], keepdims=1
            ),
            helper.make_node("Div", ["pooled", "pooled_length"], [OUTPUT], "pooling_normalise"),
        ]
    )
    dimension = hidden.type.tensor_type.shape.dim[2].dim_value
    graph.output.remove(hidden)
    graph.output.append(helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["rows", dimension]))


def _sum(axis: str) -> list[helper.NodeProto]:
    """The mean but for its length, which normalisation sets anyway."""
    return [
        helper.make_node("Cast", [MASK], ["mask_half"], "pooling_mask", to=TensorProto.FLOAT16),
        helper.make_node("Unsqueeze", ["mask_half", axis], ["mask_row"], "pooling_row"),  # (B, 1, T)
        helper.make_node("MatMul", ["mask_row", HIDDEN], ["summed"], "pooling_sum"),  # (B, 1, d)
        helper.make_node("Squeeze", ["summed", axis], ["pooled_half"], "pooling_squeeze"),
    ]


def _first(graph: GraphProto) -> list[helper.NodeProto]:
    position = numpy_helper.from_array(np.array(0, dtype=np.int64), "pooling_position")
    graph.initializer.append(position)
    return [helper.make_node("Gather", [HIDDEN, position.name], ["pooled_half"], "pooling_first", axis=1)]
