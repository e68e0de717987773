"""The encoder beside others of the same weights, and beside what this machine can multiply at best."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from bench.reporting.records import RawFile, Timing
from bench.targets.environments import ENVIRONMENTS, PEERS_MODEL, PeersMissing, install, prepare_model
from bench.targets.machine import describe_run, usable_cores
from local.paths import ROOT

_NAME = "encoders"
_ROUNDS = 5
_ENCODERS = (
    "coldframe",
    "Optimum default, int8",
    "onnxruntime, fp32",
    "OpenVINO",
    "CTranslate2, int8",
    "CTranslate2, fp32",
    "peak, fp32",
    "peak, int8",
)

# Multiplications and additions per token of all-MiniLM-L6-v2: six layers, each with four products of
# 384 × 384 and two of 384 × 1536. Attention's own two products depend on the length and are left out.
OPERATIONS_PER_TOKEN = 2 * 6 * (4 * 384 * 384 + 2 * 384 * 1536)


@dataclass(frozen=True)
class EncoderOptions:
    """environments: where those of peers are installed."""

    model_dir: Path
    out: Path
    environments: Path = ENVIRONMENTS


def run(options: EncoderOptions) -> Path:
    """Installs what is missing, measures, returns the raw file. Raises PeersMissing."""
    cores = usable_cores()
    with RawFile(options.out, describe_run("encoder", options.model_dir, 0, {"cores": cores})) as raw:
        prepare_model()
        if reason := install(options.environments / _NAME, _NAME, needs_torch=True):
            raise PeersMissing(f"The other encoders cannot be installed: {reason}")
        turns = [
            (threads, name)
            for threads in sorted({1, cores})
            for _ in range(_ROUNDS)
            for name in _ENCODERS  # in turns: a busy moment is one for all of them
        ]
        for threads, name in tqdm(turns, desc="encoders", unit="turn"):
            for timing in _timings(options, name, threads):
                raw.write(timing)
    return options.out


def _timings(options: EncoderOptions, name: str, threads: int) -> list[Timing]:
    """Of one encoder, in a process of its own. Raises PeersMissing where that fails."""
    python = options.environments / _NAME / "bin" / "python"
    program = ROOT / "bench" / "peers" / _NAME / "measure.py"
    places = (options.model_dir.resolve(), PEERS_MODEL)
    command = [str(part) for part in (python, program, name, *places, threads)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise PeersMissing(f"Measuring {name} ended with status {done.returncode}; see above.")
    return [Timing(**json.loads(line)) for line in done.stdout.splitlines()]
