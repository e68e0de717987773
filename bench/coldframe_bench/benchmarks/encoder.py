"""The encoder beside others of the same weights, and beside what this machine can multiply at best."""

import json
from collections.abc import Sequence
from pathlib import Path

from coldframe.cpus import usable_cpus
from coldframe.model.bundle import load_pair
from coldframe.model.files import encoder_folder
from coldframe.progress import Progress
from coldframe_bench.records.quantiles import median, median_ratio
from coldframe_bench.records.raw_files import RawFile, Results, Timing
from coldframe_bench.records.tables import Row, table
from coldframe_bench.targets.environments import (
    ENVIRONMENTS,
    PEERS_MODEL,
    install,
    measure_peer,
    prepare_model,
)
from coldframe_bench.targets.machine import describe_run
from coldframe_local.paths import default_model

_NAME = "encoders"
_ROUNDS = 5
OURS = "coldframe"
OPTIMUM = "Optimum default, int8"
PEAK = "peak, int8"
_ENCODERS = (
    OURS,
    OPTIMUM,
    "onnxruntime, fp32",
    "OpenVINO",
    "CTranslate2, int8",
    "CTranslate2, fp32",
    "peak, fp32",
    PEAK,
)
"""Names that `bench/peers/encoders/measure.py` knows. The peaks are products of two square matrices."""

# Multiplications and additions per token of all-MiniLM-L6-v2: six layers, each with four products of
# 384 × 384 and two of 384 × 1536. Attention's own two products depend on the length and are left out.
OPERATIONS_PER_TOKEN = 2 * 6 * (4 * 384 * 384 + 2 * 384 * 1536)


def run(model_dir: Path, out: Path, seed: int, environments: Path = ENVIRONMENTS) -> Path:
    """Installs what is missing, measures, returns the raw file. Raises PeersMissing."""
    cores = usable_cpus()
    with RawFile(out, describe_run("encoder", model_dir, seed, {"cores": cores})) as raw:
        prepare_model()
        python = install(environments, _NAME, needs_torch=True)
        _, built = load_pair(model_dir, default_model())
        folders = (encoder_folder(model_dir.resolve(), built.name), PEERS_MODEL)
        turns = [
            (threads, name)
            for threads in sorted({1, cores})
            for _ in range(_ROUNDS)
            for name in _ENCODERS  # in turns, each in its own process: a busy moment is one for all of them
        ]
        for threads, name in Progress(turns, desc="encoders", unit="turn"):
            lines = measure_peer(python, _NAME, name, *folders, threads)
            raw.write(*(Timing(**json.loads(line)) for line in lines))
    return out


def encoder_table(results: Results) -> str:
    """Tokens per second of each encoder, and their share of what the machine can multiply at best."""
    timed = results.of(Timing)
    shapes = dict.fromkeys(
        (int(t.conditions["threads"]), int(t.conditions["rows"]), int(t.conditions["tokens"]))
        for t in timed
        if "rows" in t.conditions
    )
    names = dict.fromkeys(t.name for t in timed if "rows" in t.conditions)
    rates = (f"{name}, tokens/s" for name in names)
    head = ("threads", "rows × tokens", *rates, "coldframe / Optimum default", "share of int8 peak")
    return table(head, [_row(results, list(names), *shape) for shape in shapes])


def _row(results: Results, names: Sequence[str], threads: int, rows: int, tokens: int) -> Row:
    times = {name: results.timings_ms(name, rows=rows, tokens=tokens, threads=threads) for name in names}
    rates = {name: rows * tokens / median(ms).value * 1e3 for name, ms in times.items()}
    ratio = median_ratio(times[OURS], times[OPTIMUM], results.run.seed)
    share = rates[OURS] * OPERATIONS_PER_TOKEN / peak_operations(results, PEAK, threads)
    speeds = (f"{rate:,.0f}" for rate in rates.values())
    return (str(threads), f"{rows} × {tokens}", *speeds, ratio.text(2), f"{share:.0%}")


def peak_operations(results: Results, name: str, threads: int) -> float:
    """Multiplications and additions per second in the product of two square matrices."""
    timings = [t for t in results.of(Timing) if t.name == name and t.conditions["threads"] == threads]
    side = int(timings[0].conditions["side"])
    return 2 * side**3 / median([t.ms for t in timings]).value * 1e3
