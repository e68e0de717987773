"""Facts of a run: machine, code, model, versions."""

import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from coldframe.cpus import usable_cpus
from coldframe.model.bundle import load_manifest
from coldframe_bench.records.raw_files import Run
from coldframe_local.paths import ROOT, default_model

# What int8 products run on, where a processor has it; the rest of the flags says nothing here.
_FLAGS = ("avx2", "avx_vnni", "avx512_vnni", "avx512_bf16", "amx_int8", "asimddp", "i8mm", "sve")
_BUT_RESULTS = ":!bench/published"  # a file of results that is being written does not change the code
_PACKAGES = ("numpy", "onnxruntime", "tokenizers", "msgspec", "awslambdaric", "fastapi", "mangum")


@dataclass(frozen=True)
class Check:
    """One run of `coldframe bench check`. samples: processes, containers, requests or invocations."""

    model_dir: Path
    image: str
    samples: int
    seed: int


def describe_run(benchmark: str, model_dir: Path, seed: int, options: Mapping[str, Any]) -> Run:
    """The first line of a raw file. Raises a BundleError where there is no bundle."""
    cpu, flags = _processor()
    return Run(
        benchmark=benchmark,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=_git("rev-parse", "HEAD"),
        changed=bool(_git("status", "--porcelain", "--untracked-files=no", "--", ".", _BUT_RESULTS)),
        bundle=load_manifest(model_dir, default_model()).version,
        cpu=cpu,
        cpu_flags=flags,
        cores=usable_cpus(),
        memory_mb=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        versions={name: version for name in _PACKAGES if (version := _version(name))},
        load_average=round(os.getloadavg()[0], 2),
        seed=seed,
        options=dict(options),
    )


def _processor() -> tuple[str, list[str]]:
    """Name, and those of _FLAGS that it has; the name alone where there is no /proc."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine(), []
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = set(facts.get("flags", facts.get("Features", "")).split())
    return facts.get("model name", platform.machine()), [flag for flag in _FLAGS if flag in flags]


def _git(*arguments: str) -> str:
    """Empty outside a checkout, or without git."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
