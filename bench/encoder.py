"""The encoder beside others of the same weights, and beside what this machine can multiply at best."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from bench.environments import ENVIRONMENTS, PEERS_MODEL, PeersMissing, install, prepare_model
from bench.machine import describe_run, usable_cores
from bench.records import RawFile, Timing
from local.paths import ROOT

_NAME = "encoders"

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
        for timing in tqdm(_timings(options, cores), desc="encoders", unit="pass"):
            raw.write(timing)
    return options.out


def _timings(options: EncoderOptions, cores: int) -> Iterator[Timing]:
    command = [
        str(options.environments / _NAME / "bin" / "python"),
        str(ROOT / "bench" / "peers" / _NAME / "measure.py"),
        *(str(argument) for argument in (options.model_dir.resolve(), PEERS_MODEL, cores)),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with process:
        for line in process.stdout or ():
            yield Timing(**json.loads(line))
    if process.returncode:
        raise PeersMissing(f"Measuring the encoders ended with status {process.returncode}; see above.")
