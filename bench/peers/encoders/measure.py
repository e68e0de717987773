"""Encoders side by side in one process: `measure.py BUNDLE FOLDER CORES`, one line of JSON per timed pass.

FOLDER is what bench/peers/prepare.py made. Variants take turns on each shape, so that a noisy
machine is noisy for all of them. The first pass of each is not counted.
"""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import ctranslate2
import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import TensorProto, helper

SHAPES = ((1, 16), (1, 64), (1, 128), (1, 256), (8, 32), (8, 128), (32, 32))
_TOKENS = 1000  # of a shape are passed, in at least ten passes
_SIDE = 1024  # of the matrices whose product is the machine's peak
_REST_S = 0.005  # until the threads of the one before spin no longer
_SEED = 0

Run = Callable[[np.ndarray], object]


def main(bundle: Path, folder: Path, cores: int) -> None:
    """All threads, shapes and variants, then the peaks."""
    for threads in sorted({1, cores}):
        variants = _variants(bundle, folder, threads)
        for rows, tokens in SHAPES:
            ids = np.random.default_rng(_SEED).integers(1000, 29_000, size=(rows, tokens))
            _measure(
                {name: partial(run, ids) for name, run in variants.items()},
                {"rows": rows, "tokens": tokens, "threads": threads},
                max(10, _TOKENS // (rows * tokens)),
            )
        _measure(_peaks(threads), {"side": _SIDE, "threads": threads}, 20)


def _measure(calls: dict[str, Callable[[], object]], conditions: dict[str, int], passes: int) -> None:
    for number in range(passes + 1):
        for name, call in calls.items():
            if conditions["threads"] > 1:
                time.sleep(_REST_S)
            started = time.perf_counter()
            call()
            spent_ms = (time.perf_counter() - started) * 1e3
            if number:
                print(json.dumps({"name": name, "conditions": conditions, "ms": spent_ms}), flush=True)


def _variants(bundle: Path, folder: Path, threads: int) -> dict[str, Run]:
    standard = folder / "model" / "onnx"
    return {
        "coldframe": _onnxruntime(bundle / "encoder.ort", threads),
        "Optimum default, int8": _onnxruntime(standard / "model_quantized.onnx", threads),
        "onnxruntime, fp32": _onnxruntime(standard / "model.onnx", threads),
        "OpenVINO": _openvino(standard / "model.onnx", threads),
        "CTranslate2, int8": _ctranslate2(folder, "int8", threads),
        "CTranslate2, fp32": _ctranslate2(folder, "float32", threads),
    }


def _onnxruntime(path: Path, threads: int) -> Run:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    if path.suffix == ".ort":  # optimised when it was built
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    names = [given.name for given in session.get_inputs()]
    return lambda ids: session.run(None, {name: _inputs(ids)[name] for name in names})


def _openvino(path: Path, threads: int) -> Run:
    """In its own choice of precision, which is bfloat16 where the processor has it."""
    options = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    model = openvino.Core().compile_model(str(path), "CPU", options)
    names = [given.any_name for given in model.inputs]
    return lambda ids: model({name: _inputs(ids)[name] for name in names})


def _ctranslate2(folder: Path, kind: str, threads: int) -> Run:
    target = folder / "ctranslate2"
    if not target.exists():
        ctranslate2.converters.TransformersConverter(str(folder / "model")).convert(str(target))
    encoder = ctranslate2.Encoder(str(target), compute_type=kind, intra_threads=threads, inter_threads=1)
    return lambda ids: np.array(encoder.forward_batch(ids.tolist()).last_hidden_state)


def _inputs(ids: np.ndarray) -> dict[str, np.ndarray]:
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


def _peaks(threads: int) -> dict[str, Callable[[], object]]:
    """Products of square matrices by onnxruntime, the right one constant as weights are."""
    random = np.random.default_rng(_SEED)
    fp32 = random.normal(size=(_SIDE, _SIDE)).astype(np.float32)
    left = random.integers(0, 256, size=(_SIDE, _SIDE), dtype=np.uint8)
    right = random.integers(-64, 64, size=(_SIDE, _SIDE), dtype=np.int8)
    return {
        "peak, fp32": _product("MatMul", fp32, fp32, threads),
        "peak, int8": _product("MatMulInteger", left, right, threads),
    }


def _product(operator: str, left: np.ndarray, right: np.ndarray, threads: int) -> Callable[[], object]:
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


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
