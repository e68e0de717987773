"""Encoder variants side by side: `make bench-encoder` prints the table of docs/encoder.md.

Latency is the median of interleaved passes on one thread, quoted as a ratio to
Optimum's default recipe in the same run. Fidelity is the cosine to fp32 on
stripped test documents (on the golden texts where the data set is not there).
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from optimum.exporters.onnx import main_export
from optimum.onnxruntime import ORTQuantizer
from optimum.onnxruntime.configuration import AutoQuantizationConfig
from tqdm import tqdm

from coldframe.bundle import Golden
from coldframe.heads import load_head
from coldframe.text import normalise
from coldframe.tokenizer import TextWindows
from layers.model.build import ENCODER_FACTS, unpack_head, write_tokenizer
from layers.model.export import export_fp32
from layers.model.paths import CACHE, CALIBRATION, HEADS
from layers.model.quantize import Ranges, quantize, quantize_dynamic, save_ort
from layers.model.weights import find_weights

SHAPES = ((1, 16), (1, 64), (1, 128), (1, 256), (8, 32))
BASELINE = "Optimum avx512_vnni, dynamic"
SERVED = "**served: calibrated, 7-bit weights**"
_PASSES_TOKENS = 6_000  # passes of a shape: about this many tokens, at least 15
_DOCUMENTS = 1_000

Session = Callable[[NDArray[np.int64]], NDArray[np.float32]]


def main() -> None:
    """Builds every variant, measures, prints a Markdown table."""
    weights = find_weights(None, CACHE / "weights")
    folder = CACHE / "variants"
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(weights, folder)
    paths = build_variants(weights, folder)
    sessions = {name: open_session(path) for name, path in tqdm(paths.items(), desc="load", unit="variant")}
    times_ms = measure_latency(sessions)
    texts, target = documents()
    rows = TextWindows(folder, msgspec.structs.replace(ENCODER_FACTS, max_windows=1)).cut(texts)
    embeddings = {
        name: np.concatenate([run(np.array(row, dtype=np.int64)) for row in tqdm(rows, desc=name[:20])])
        for name, run in sessions.items()
    }
    print_table(paths, times_ms, embeddings, target)


def build_variants(weights: Path, folder: Path) -> dict[str, Path]:
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
    return {
        "Optimum's export, fp32": folder / "standard" / "model.onnx",
        "our graph, fp32": fp32,
        BASELINE: folder / "default" / "model_quantized.onnx",
        "our graph, dynamic ranges": folder / "dynamic.ort",
        SERVED: folder / "served.ort",
        "served, with 8-bit weights": folder / "full_range.ort",
        "served, saved at EXTENDED": folder / "extended.ort",
    }


def open_session(path: Path) -> Session:
    """Token ids of rows of equal length to embeddings, whatever the graph's inputs and outputs."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    if path.suffix == ".ort":
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [given.name for given in session.get_inputs()]

    def run(ids: NDArray[np.int64]) -> NDArray[np.float32]:
        others = {"attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        found = session.run(None, {name: others.get(name, ids) for name in names})[0]
        if found.ndim == 3:  # (B, T, d): pooling is the caller's
            found = found.mean(axis=1)
            found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found  # type: ignore[no-any-return]

    return run


def measure_latency(sessions: dict[str, Session]) -> dict[str, list[float]]:
    """Median milliseconds of a pass, by variant, for each of SHAPES."""
    random = np.random.default_rng(0)
    medians: dict[str, list[float]] = {name: [] for name in sessions}
    for rows, tokens in tqdm(SHAPES, desc="latency", unit="shape"):
        ids = random.integers(1000, 29_000, size=(rows, tokens))
        samples: dict[str, list[float]] = {name: [] for name in sessions}
        for _ in range(max(15, _PASSES_TOKENS // (rows * tokens)) + 1):
            for name, run in sessions.items():
                started = time.perf_counter()
                run(ids)
                samples[name].append((time.perf_counter() - started) * 1e3)
        for name, taken in samples.items():
            medians[name].append(statistics.median(taken[1:]))  # the first one is a warm-up
    return medians


def documents() -> tuple[list[str], NDArray[np.int64] | None]:
    """Texts to compare embeddings on, and their classes if they have any."""
    if "COLDFRAME_DATA" not in os.environ:
        golden = msgspec.json.decode((HEADS / "golden.json").read_bytes(), type=Golden)
        return [normalise(vector.text) for vector in golden.vectors], None
    from layers.model.data import load_split

    test = load_split("test")
    chosen = np.random.default_rng(0).permutation(len(test.stripped))[:_DOCUMENTS]
    return [normalise(test.stripped[i]) for i in chosen], test.target[chosen]


def print_table(
    paths: dict[str, Path],
    times_ms: dict[str, list[float]],
    embeddings: dict[str, NDArray[np.float32]],
    target: NDArray[np.int64] | None,
) -> None:
    """One row per variant: size, latency ratios, cosines, accuracy of the served MLP head."""
    reference = embeddings["Optimum's export, fp32"]
    with tempfile.TemporaryDirectory() as scratch:
        unpack_head("mlp", Path(scratch))
        head = load_head(Path(scratch), "mlp")
    shapes = " | ".join(f"{rows}×{tokens}" for rows, tokens in SHAPES)
    print(f"| variant | MB | {shapes} | cosine mean | 1st pct | accuracy |")
    print("|" + "---|" * (len(SHAPES) + 5))
    for name, found in embeddings.items():
        ratios = " | ".join(
            f"{mine / base:.2f}" for mine, base in zip(times_ms[name], times_ms[BASELINE], strict=True)
        )
        cosines = (found * reference).sum(axis=1)
        right = "" if target is None else f"{(head.predict(found).argmax(axis=1) == target).mean():.3f}"
        size_mb = paths[name].stat().st_size / 1e6
        fidelity = f"{cosines.mean():.4f} | {np.percentile(cosines, 1):.4f}"
        print(f"| {name} | {size_mb:.0f} | {ratios} | {fidelity} | {right} |")
    base = ", ".join(f"{ms:.2f}" for ms in times_ms[BASELINE])
    print(f"\nBaseline, ms: {base}. {len(reference)} texts, one thread, onnxruntime {ort.__version__}.")


if __name__ == "__main__":
    sys.exit(main())
