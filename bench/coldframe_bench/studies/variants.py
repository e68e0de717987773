"""Encoder variants side by side: `make bench-encoder` prints the table of docs/encoder.md.

Latency is the median of interleaved passes on one thread, quoted as a ratio to
Optimum's default recipe in the same run. Fidelity is `fidelity.py`'s.
"""

import logging
import statistics
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.transformers.float16 import convert_float_to_float16
from optimum.exporters.onnx import main_export
from optimum.onnxruntime import ORTQuantizer
from optimum.onnxruntime.configuration import AutoQuantizationConfig

from coldframe.model.tokenizer import Window
from coldframe.progress import Progress
from coldframe_bench.studies.fidelity import Documents, Fidelity, Session, difference, documents, embed, judge
from coldframe_training.encoder_build.export import export_fp32
from coldframe_training.encoder_build.graph import INPUT
from coldframe_training.encoder_build.quantize import Ranges, quantize, quantize_dynamic, save_ort
from coldframe_training.encoder_build.tokenizer_files import write_tokenizer
from coldframe_training.encoder_build.weights import find_weights
from coldframe_training.files.paths import CACHE, CALIBRATION

SHAPES = ((1, 16), (1, 64), (1, 128), (1, 256), (8, 32))
BASELINE = "Optimum avx512_vnni, dynamic"
FP32 = "our graph, fp32"
SERVED = "**served: calibrated, 7-bit weights**"
EXPORT = "Optimum's export, fp32"
EXTENDED = "served, saved at EXTENDED"
_SAME = {EXPORT: FP32, EXTENDED: SERVED}  # the same arithmetic, arranged otherwise
_PASSES_TOKENS = 6_000  # passes of a shape: about this many tokens, at least 15
_CALIBRATION_ROWS = 64  # onnxruntime's calibration keeps every tensor of every row


def main() -> None:
    """Builds every variant, measures, prints a Markdown table."""
    weights = find_weights(None, CACHE / "weights")
    folder = CACHE / "variants"
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(weights, folder)
    texts = documents(folder)
    paths = build_variants(weights, folder, texts.rows[:_CALIBRATION_ROWS])
    sessions = {
        name: open_session(path) for name, path in Progress(paths.items(), desc="load", unit="variant")
    }
    times_ms = measure_latency(sessions)
    embeddings = {name: embed(name, sessions[name], texts.rows) for name in paths if name not in _SAME}
    fidelities = {name: judge(rows, embeddings[FP32], texts) for name, rows in embeddings.items()}
    print_table(paths, times_ms, fidelities, texts)


def build_variants(weights: Path, folder: Path, calibration: Iterable[Window]) -> dict[str, Path]:
    """The files of all variants, by name, the baseline among them."""
    main_export(str(weights), folder / "standard", task="feature-extraction")
    recipe = AutoQuantizationConfig.avx512_vnni(is_static=False, per_channel=True)
    ORTQuantizer.from_pretrained(folder / "standard").quantize(recipe, folder / "default")
    fp32 = folder / "fp32.onnx"
    export_fp32(weights, fp32)
    ranges = msgspec.json.decode(CALIBRATION.read_bytes(), type=Ranges)
    quantize(fp32, ranges, folder / "served.ort")
    quantize(fp32, ranges, folder / "full_range.ort", reduce_range=False)
    quantize(fp32, ranges, folder / "extended.ort", level=ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED)
    dynamic = quantize_dynamic(fp32, folder, reduce_range=True)
    save_ort(dynamic, folder / "dynamic.ort")
    onnx.save(convert_float_to_float16(onnx.load(fp32), keep_io_types=True), folder / "fp16.onnx")
    quantize_qdq(fp32, folder / "static.onnx", calibration)
    for layers in (3, 4):
        export_fp32(weights, folder / f"fp32-{layers}.onnx", layers)
        quantize(folder / f"fp32-{layers}.onnx", ranges, folder / f"layers-{layers}.ort")
    return {
        EXPORT: folder / "standard" / "model.onnx",
        FP32: fp32,
        "our graph, fp16": folder / "fp16.onnx",
        BASELINE: folder / "default" / "model_quantized.onnx",
        "our graph, dynamic ranges": folder / "dynamic.ort",
        "our graph, `quantize_static` (QDQ)": folder / "static.onnx",
        SERVED: folder / "served.ort",
        "served, with 8-bit weights": folder / "full_range.ort",
        EXTENDED: folder / "extended.ort",
        "served, first 4 of 6 layers": folder / "layers-4.ort",
        "served, first 3 of 6 layers": folder / "layers-3.ort",
    }


class Rows(CalibrationDataReader):
    """Token ids in the form that onnxruntime's calibration reads them."""

    def __init__(self, rows: Iterable[Window]) -> None:
        self._rows = iter(rows)

    def get_next(self) -> Mapping[str, NDArray[np.int64]] | None:
        row = next(self._rows, None)
        return None if row is None else {INPUT: np.array([row], dtype=np.int64)}


def quantize_qdq(fp32: Path, target: Path, calibration: Iterable[Window]) -> None:
    """Static int8 as onnxruntime makes it: every operation it can, between quantized tensors."""
    logging.getLogger().setLevel(logging.ERROR)  # it warns on the root logger that it was not preprocessed
    quantize_static(
        fp32,
        target,
        Rows(calibration),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        per_channel=True,
        reduce_range=True,
    )


def open_session(path: Path) -> Session:
    """Token ids of rows of equal length to embeddings, whatever the graph's inputs and outputs."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    if path.suffix == ".ort":
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [argument.name for argument in session.get_inputs()]

    def run(ids: NDArray[np.int64]) -> NDArray[np.float32]:
        others = {"attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        output = session.run(None, {name: others.get(name, ids) for name in names})[0]
        if output.ndim == 3:  # (B, T, d): pooling is the caller's
            output = output.mean(axis=1)
            output /= np.linalg.norm(output, axis=1, keepdims=True)
        return output  # type: ignore[no-any-return]

    return run


def measure_latency(sessions: dict[str, Session]) -> dict[str, list[float]]:
    """Median milliseconds of a pass, by variant, for each of SHAPES."""
    random = np.random.default_rng(0)
    medians: dict[str, list[float]] = {name: [] for name in sessions}
    for rows, tokens in Progress(SHAPES, desc="latency", unit="shape"):
        ids = random.integers(1000, 29_000, size=(rows, tokens))
        samples: dict[str, list[float]] = {name: [] for name in sessions}
        for _ in range(max(15, _PASSES_TOKENS // (rows * tokens)) + 1):
            for name, run in sessions.items():
                started = time.perf_counter()
                run(ids)
                samples[name].append((time.perf_counter() - started) * 1e3)
        for name, times_ms in samples.items():
            medians[name].append(statistics.median(times_ms[1:]))  # the first one is a warm-up
    return medians


def print_table(
    paths: Mapping[str, Path],
    times_ms: Mapping[str, list[float]],
    fidelities: Mapping[str, Fidelity],
    texts: Documents,
) -> None:
    """One row per variant: size, latency ratios, cosines, accuracy and its difference to fp32 in points."""
    shapes = " | ".join(f"{rows}×{tokens}" for rows, tokens in SHAPES)
    print(f"| variant | MB | {shapes} | cosine mean | 1st pct | accuracy | points to fp32 |")
    print("|" + "---|" * (len(SHAPES) + 6))
    for name in paths:
        fidelity = fidelities[_SAME.get(name, name)]
        ratios = " | ".join(
            f"{mine / base:.2f}" for mine, base in zip(times_ms[name], times_ms[BASELINE], strict=True)
        )
        cosines = f"{fidelity.cosines.mean():.4f} | {np.percentile(fidelity.cosines, 1):.4f}"
        size_mb = paths[name].stat().st_size / 1e6
        print(f"| {name} | {size_mb:.0f} | {ratios} | {cosines} | {accuracy(fidelity, fidelities[FP32])} |")
    base = ", ".join(f"{ms:.2f}" for ms in times_ms[BASELINE])
    count = len(texts.rows[texts.judged])
    print(f"\nBaseline, ms: {base}. {count} texts, one thread, onnxruntime {ort.__version__}.")


def accuracy(fidelity: Fidelity, of_fp32: Fidelity) -> str:
    """Two cells: accuracy, and its difference to fp32 in points with the standard error."""
    if fidelity.right is None or of_fp32.right is None:
        return "| "
    points, error = (100 * value for value in difference(fidelity.right, of_fp32.right))
    return f"{fidelity.right.mean():.4f} | " + (f"{points:+.2f} ± {error:.2f}" if error else "0")


if __name__ == "__main__":
    main()
