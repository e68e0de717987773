"""Removes from installed dependencies what serving never opens. The image's build runs it, nothing else does.

    python3 functions/slim.py FOLDER [--gpu]

A pattern that matches nothing ends the build: a dependency has changed, and the table below with it.
"""

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

REMOVED: dict[str, tuple[str, ...]] = {
    "libraries of onnxruntime for C and C++: the Python module links its own copy": (
        "onnxruntime/capi/libonnxruntime.so*",
    ),
    "tools of onnxruntime that make models; serving runs one": (
        "onnxruntime/backend",
        "onnxruntime/datasets",
        "onnxruntime/quantization",
        "onnxruntime/tools",
        "onnxruntime/transformers",
    ),
    "AWS services that are not called: cache and jobs are in DynamoDB, S3 and SQS, STS gives credentials": (
        "botocore/data/*/",
        "boto3/data",
        "boto3/examples",
    ),
    "tests, and what only tests load": (
        "numpy/**/tests",
        "numpy/_core/_*_tests.*.so",
        "numpy/_core/_simd.*.so",
    ),
    "what compiles against numpy, or for Fortran": (
        "numpy/**/*.pxd",
        "numpy/_core/include",
        "numpy/_core/lib",
        "numpy/f2py",
        "numpy/random/lib",
    ),
    "types for editors": ("**/*.pyi",),
    "commands": ("bin",),
}
"""Why, and what: patterns below the folder."""

REMOVED_ON_GPU: dict[str, tuple[str, ...]] = {
    "TensorRT's side of onnxruntime: graphs run by CUDA's": (
        "onnxruntime/capi/libonnxruntime_providers_tensorrt.so",
    ),
    "what compiles against CUDA": (
        "nvidia/**/include",
        "nvidia/**/*.a",
    ),
    "a library that stands in for a BLAS of the CPU": ("nvidia/**/libnvblas.so*",),
}
"""The same, of the packages for a GPU."""

REMOVED_OF_PYARROW: dict[str, tuple[str, ...]] = {
    "what compiles against Arrow, and its tests": (
        "pyarrow/include",
        "pyarrow/includes",
        "pyarrow/src",
        "pyarrow/tests",
    ),
    "Arrow's servers": ("pyarrow/*flight*.so*",),
    "a client of S3 beside boto3": ("pyarrow/*_s3*.so*",),
}
"""The same, where pyarrow is among the packages."""

KEPT = tuple(f"botocore/data/{service}" for service in ("dynamodb", "s3", "sns", "sqs", "sts"))


def main(folder: Path, removed: dict[str, tuple[str, ...]] = REMOVED) -> None:
    """Removes all that a table names, and prints how much of it there was."""
    kept = {folder / path for path in KEPT}
    if missing := [str(path) for path in sorted(kept) if not path.exists()]:
        sys.exit(f"Serving needs {missing}, not there. Correct KEPT in functions/slim.py.")
    for why, patterns in removed.items():
        removed_bytes = sum(_remove(set(_match(folder, pattern)) - kept) for pattern in patterns)
        print(f"{removed_bytes / 1e6:6.1f} MB  {why}")


def _match(folder: Path, pattern: str) -> list[Path]:
    found = list(folder.glob(pattern))
    if not found:
        sys.exit(f"{pattern} matches nothing below {folder}. Correct REMOVED in functions/slim.py.")
    return found


def _remove(paths: Iterable[Path]) -> int:
    """Removes files and folders; returns the bytes they had."""
    removed_bytes = 0
    for path in paths:
        inside = path.rglob("*") if path.is_dir() else [path]
        removed_bytes += sum(file.lstat().st_size for file in inside if not file.is_dir())
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return removed_bytes


if __name__ == "__main__":
    at = Path(sys.argv[1])
    on_gpu = REMOVED_ON_GPU if "--gpu" in sys.argv else {}
    of_pyarrow = REMOVED_OF_PYARROW if (at / "pyarrow").exists() else {}
    main(at, REMOVED | on_gpu | of_pyarrow)
