"""One encoder, alone in its process: `measure.py NAME BUNDLE FOLDER THREADS`, a line of JSON per timed pass.

FOLDER is what bench/peers/prepare.py made; NAME is a key of _ENCODERS or _PEAKS. Alone, because threads of a
library wait for work by spinning, up to 200 ms long: beside them, whoever comes next has half of two cores.
The first pass on each shape is not counted.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import ctranslate2
import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import TensorProto, helper

SHAPES = ((1, 16), (1, 64), (1, 128), (1, 256), (8, 32), (8, 128), (32, 32))
_TOKENS = 400  # of a shape are passed, in at least five passes
_SIDE = 1024  # of the matrices whose product is the machine's peak
_SEED = 0

Run = Callable[[np.ndarray], object]


def main(name: str, bundle: Path, folder: Path, threads: int) -> None:
    """All shapes by an encoder, or the product of two matrices."""
    if name in _PEAKS:
        product = _PEAKS[name](threads)
        _measure(name, {"side": _SIDE, "threads": threads}, product, 10)
        return
    run = _ENCODERS[name](bundle, folder, threads)
    for rows, tokens in SHAPES:
        ids = np.random.default_rng(_SEED).integers(1000, 29_000, size=(rows, tokens))
        conditions = {"rows": rows, "tokens": tokens, "threads": threads}
        _measure(name, conditions, lambda ids=ids: run(ids), max(5, _TOKENS // (rows * tokens)))


def _measure(name: str, conditions: dict[str, int], call: Callable[[], object], passes: int) -> None:
    for number in range(passes + 1):
        started = time.perf_counter()
        call()
        spent_ms = (time.perf_counter() - started) * 1e3
        if number:
            print(json.dumps({"name": name, "conditions": conditions, "ms": spent_ms}), flush=True)


def _onnxruntime(path: Path, threads: int) -> Run:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    if path.suffix == ".ort":  # optimised when it was built
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    return _run([tensor.name for tensor in session.get_inputs()], lambda inputs: session.run(None, inputs))


def _openvino(path: Path, threads: int) -> Run:
    """In its own choice of precision, which is bfloat16 where the processor has it."""
    options = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    model = openvino.Core().compile_model(str(path), "CPU", options)
    return _run([tensor.any_name for tensor in model.inputs], model)


def _ctranslate2(folder: Path, kind: str, threads: int) -> Run:
    target = folder / "ctranslate2"
    if not target.exists():
        ctranslate2.converters.TransformersConverter(str(folder / "model")).convert(str(target))
    encoder = ctranslate2.Encoder(str(target), compute_type=kind, intra_threads=threads, inter_threads=1)
    return lambda ids: np.array(encoder.forward_batch(ids.tolist()).last_hidden_state)


def _run(names: list[str], model: Callable[[dict[str, np.ndarray]], object]) -> Run:
    """A model on token ids alone. names: of the inputs that it takes."""

    def run(ids: np.ndarray) -> object:
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        return model({name: inputs[name] for name in names})

    return run


def _peak_fp32(threads: int) -> Callable[[], object]:
    square = np.random.default_rng(_SEED).normal(size=(_SIDE, _SIDE)).astype(np.float32)
    return _product("MatMul", square, square, threads)


def _peak_int8(threads: int) -> Callable[[], object]:
    random = np.random.default_rng(_SEED)
    left = random.integers(0, 256, size=(_SIDE, _SIDE), dtype=np.uint8)
    right = random.integers(-64, 64, size=(_SIDE, _SIDE), dtype=np.int8)
    return _product("MatMulInteger", left, right, threads)


def _product(operator: str, left: np.ndarray, right: np.ndarray, threads: int) -> Callable[[], object]:
    """By onnxruntime, the right matrix constant as weights are."""
    kind = helper.np_dtype_to_tensor_dtype(left.dtype)
    result = TensorProto.INT32 if operator == "MatMulInteger" else kind
    shape = [_SIDE, _SIDE]
    graph = helper.make_graph(
        [helper.make_node(operator, ["a", "b"], ["c"])],
        operator,
        [helper.make_tensor_value_info("a", kind, shape)],
        [helper.make_tensor_value_info("c", result, shape)],
        [onnx.numpy_helper.from_array(right, "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return lambda: session.run(None, {"a": left})


def _standard(folder: Path, name: str, threads: int) -> Run:
    return _onnxruntime(folder / "model" / "onnx" / name, threads)


_ENCODERS: dict[str, Callable[[Path, Path, int], Run]] = {
    "coldframe": lambda bundle, _, threads: _onnxruntime(bundle / "encoder.ort", threads),
    "Optimum default, int8": lambda _, folder, threads: _standard(folder, "model_quantized.onnx", threads),
    "onnxruntime, fp32": lambda _, folder, threads: _standard(folder, "model.onnx", threads),
    "OpenVINO": lambda _, folder, threads: _openvino(folder / "model" / "onnx" / "model.onnx", threads),
    "CTranslate2, int8": lambda _, folder, threads: _ctranslate2(folder, "int8", threads),
    "CTranslate2, fp32": lambda _, folder, threads: _ctranslate2(folder, "float32", threads),
}
_PEAKS = {"peak, fp32": _peak_fp32, "peak, int8": _peak_int8}


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
