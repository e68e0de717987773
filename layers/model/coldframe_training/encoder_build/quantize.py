"""fp32 graph to int8: Optimum's quantization, calibrated ranges, onnxruntime's portable format.

Optimum writes dynamic ranges: every tensor is measured as it passes, so a row's
embedding changes with its neighbours. They are replaced by ranges measured
once (`encoder/calibration.json` for the default encoder): rows are on their own then,
and the product, its scale and its bias become one operation.
"""

import hashlib
import itertools
import logging
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, helper, numpy_helper
from onnxruntime.quantization import QuantFormat, QuantizationMode, QuantType
from optimum.onnxruntime import ORTQuantizer
from optimum.onnxruntime.configuration import QuantizationConfig

from coldframe_training.encoder_build.graph import INPUT


class GraphDiffers(Exception):
    """A graph is not made as quantization expects it."""


class Range(msgspec.Struct, frozen=True):
    """Lowest and highest value that the input of a quantized product takes."""

    low: float
    high: float


Ranges = dict[str, Range]
"""By name of the product (the MatMul node), in graph order."""


def measure_ranges(fp32: Path, rows: Iterable[NDArray[np.int64]]) -> Ranges:
    """Ranges of the inputs of all quantized products over `rows`, each (1, T)."""
    model = onnx.load(fp32)
    inputs = {node.name: node.input[0] for node in _weight_products(model.graph)}
    for tensor in dict.fromkeys(inputs.values()):
        model.graph.output.append(helper.make_tensor_value_info(tensor, onnx.TensorProto.FLOAT, None))
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    tensors = list(inputs.values())
    ranges = np.array([[(t.min(), t.max()) for t in session.run(tensors, {INPUT: row})] for row in rows])
    # Four digits are plenty for a range, and make the file the same on every machine.
    lows, highs = ranges[:, :, 0].min(axis=0), ranges[:, :, 1].max(axis=0)
    return {
        name: Range(float(f"{low:.4g}"), float(f"{high:.4g}"))
        for name, low, high in zip(inputs, lows, highs, strict=True)
    }


def open_fp32(fp32: Path) -> Callable[[Sequence[Sequence[int]]], NDArray[np.float32]]:
    """Token ids of rows of equal length to embeddings, by the graph before quantization."""
    session = ort.InferenceSession(str(fp32), providers=["CPUExecutionProvider"])
    return lambda rows: session.run(None, {INPUT: np.array(rows, dtype=np.int64)})[0]


# BASIC, not EXTENDED: that level fuses Add and LayerNormalization into
# SkipLayerNormalization, which takes nine times as long as the two together.
_LEVEL = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC


def quantize(
    fp32: Path,
    ranges: Ranges,
    target: Path,
    reduce_range: bool = True,
    level: ort.GraphOptimizationLevel = _LEVEL,
) -> str:
    """Writes the int8 encoder as a portable `.ort` file. Returns the digest of its graph."""
    with tempfile.TemporaryDirectory() as scratch:
        model = onnx.load(quantize_dynamic(fp32, Path(scratch), reduce_range))
        _set_ranges(model.graph, ranges)
        _set_shapes(model.graph)
        _drop_unused(model.graph)
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        int8 = Path(scratch) / "int8.onnx"
        onnx.save(model, int8)
        save_ort(int8, target, level)
        return hashlib.sha256(int8.read_bytes()).hexdigest()


def quantize_dynamic(fp32: Path, folder: Path, reduce_range: bool) -> Path:
    """Optimum's dynamic int8 of every product with weights, and of the word embeddings.

    Seven bits per weight (`reduce_range`): with eight, processors with AVX2 and
    without VNNI saturate and are silently wrong.
    """
    graph = onnx.load(fp32).graph
    constants = {tensor.name for tensor in graph.initializer}
    tables = [node for node in graph.node if node.op_type == "Gather" and node.input[0] in constants]
    config = QuantizationConfig(
        is_static=False,
        format=QuantFormat.QOperator,
        mode=QuantizationMode.IntegerOps,
        activations_dtype=QuantType.QUInt8,
        weights_dtype=QuantType.QInt8,
        per_channel=True,
        reduce_range=reduce_range,
        nodes_to_quantize=[node.name for node in _weight_products(graph) + tables],
        operators_to_quantize=["MatMul", "Gather"],
    )
    # The quantizer copies every file beside the model: keep it alone. It then misses a config.json.
    logging.getLogger("optimum.onnxruntime").setLevel(logging.ERROR)
    alone = Path(shutil.copy(fp32, folder / "encoder.onnx"))
    ORTQuantizer(alone).quantize(config, folder / "dynamic", file_suffix="")
    return folder / "dynamic" / alone.name


def _weight_products(graph: GraphProto) -> list[NodeProto]:
    """MatMul nodes with constant weights; the products of attention have none."""
    constants = {tensor.name for tensor in graph.initializer}
    return [node for node in graph.node if node.op_type == "MatMul" and node.input[1] in constants]


def _set_ranges(graph: GraphProto, ranges: Mapping[str, Range]) -> None:
    """DynamicQuantizeLinear, MatMulInteger, Cast, Mul, Add → QuantizeLinear, MatMulIntegerToFloat.

    Raises GraphDiffers for a product without a range.
    """
    maker = {output: node for node in graph.node for output in node.output}
    reader = {tensor: node for node in graph.node for tensor in node.input}
    constants = {tensor.name for tensor in graph.initializer}
    replaced: dict[str, NodeProto] = {}  # by the tensor that a node made
    for product in [node for node in graph.node if node.op_type == "MatMulInteger"]:
        try:
            scaled = reader[reader[product.output[0]].output[0]]  # Cast, then Mul
            biased = reader[scaled.output[0]]
            scales = next(maker[tensor] for tensor in scaled.input if maker[tensor].op_type == "Mul")
            activation = maker[product.input[0]]  # DynamicQuantizeLinear
            quantized, scale, zero_point = activation.output
            weight_scale = next(tensor for tensor in scales.input if tensor in constants)
            bias = next(tensor for tensor in biased.input if tensor in constants)
        except (KeyError, ValueError, StopIteration) as exc:
            raise GraphDiffers(
                f"The quantized graph has an unknown node behind {product.name}. Expected a product of a"
                " DynamicQuantizeLinear with constant weights, then Cast, Mul and Add of a constant bias."
            ) from exc
        name = product.name.removesuffix("_quant")
        if name not in ranges:
            raise GraphDiffers(
                f"The graph multiplies at {name}, but the {len(ranges)} measured ranges do not include it."
                " Expected the ranges of this graph: measure them anew."
            )
        graph.initializer.extend(_affine(ranges[name], scale, zero_point))
        replaced[quantized] = helper.make_node(
            "QuantizeLinear", [activation.input[0], scale, zero_point], [quantized], name=activation.name
        )
        replaced[biased.output[0]] = helper.make_node(
            "MatMulIntegerToFloat",
            [quantized, product.input[1], scale, weight_scale, zero_point, product.input[3], bias],
            [biased.output[0]],
            domain="com.microsoft",
            name=name,
        )
    _replace_nodes(graph, [replaced.get(node.output[0], node) for node in graph.node])


def _affine(range_: Range, scale: str, zero_point: str) -> list[onnx.TensorProto]:
    """Scale and zero point of uint8 over a range that includes zero."""
    low, high = min(range_.low, 0.0), max(range_.high, 0.0)
    step = np.float32((high - low) / 255)
    zero = np.uint8(np.clip(np.rint(-low / step), 0, 255))
    return [
        numpy_helper.from_array(np.array(step), scale),
        numpy_helper.from_array(np.array(zero), zero_point),
    ]


def _set_shapes(graph: GraphProto) -> None:
    """Constant shapes for the reshapes around attention, instead of eight nodes that compute each.

    0 keeps a dimension as it is: (B, T, d) ↔ (B, T, heads, d / heads). A reshape that a transposition
    follows goes by heads. Raises GraphDiffers unless all of those have one number of heads.
    """
    readers = {tensor: node for node in graph.node for tensor in node.input}
    reshapes = [node for node in graph.node if node.op_type == "Reshape"]
    by_head = {node.output[0] for node in reshapes if readers[node.output[0]].op_type == "Transpose"}
    sizes = {_last_sizes(graph, node.input[1]) for node in reshapes if node.output[0] in by_head}
    if len(sizes) != 1 or len(rank_two := next(iter(sizes))) != 2:
        raise GraphDiffers(f"The graph reshapes by {sorted(sizes)}. Expected one pair: heads, d / heads.")
    heads, each = rank_two
    shapes = {"shape_by_head": [0, 0, heads, each], "shape_merged": [0, 0, heads * each]}
    graph.initializer.extend(numpy_helper.from_array(np.array(shape), name) for name, shape in shapes.items())
    for node in reshapes:
        node.input[1] = "shape_by_head" if node.output[0] in by_head else "shape_merged"


def _last_sizes(graph: GraphProto, shape: str) -> tuple[int, ...]:
    """The sizes at the end of a shape that are numbers, and not another tensor's."""
    constants = {node.output[0]: node.attribute[0].t for node in graph.node if node.op_type == "Constant"}
    constants |= {tensor.name: tensor for tensor in graph.initializer}
    parts: list[str] = next((list(node.input) for node in graph.node if shape in node.output), [])
    sizes = itertools.takewhile(constants.__contains__, reversed(parts))
    return tuple(reversed([int(numpy_helper.to_array(constants[part]).item()) for part in sizes]))


def _drop_unused(graph: GraphProto) -> None:
    """Removes nodes and constants that nothing reads any more."""
    while True:
        read = {tensor for node in graph.node for tensor in node.input} | {
            output.name for output in graph.output
        }
        live = [node for node in graph.node if any(output in read for output in node.output)]
        if len(live) == len(graph.node):
            break
        _replace_nodes(graph, live)
    initializers = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(initializers)


def _replace_nodes(graph: GraphProto, nodes: list[NodeProto]) -> None:
    nodes = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(nodes)


def save_ort(model: Path, target: Path, level: ort.GraphOptimizationLevel = _LEVEL) -> None:
    """Optimises an ONNX graph and writes it in onnxruntime's own format."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = str(target)
    options.add_session_config_entry("session.save_model_format", "ORT")
    # It would move each QuantizeLinear before the Transpose and Reshape that come ahead of it, with a
    # DequantizeLinear and another QuantizeLinear behind: the same bits, three to five hundredths slower.
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
