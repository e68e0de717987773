"""Removes files that serving never opens from installed dependencies. Only the image's build runs it.

    python3 functions/slim.py FOLDER [--gpu]

A pattern that matches nothing fails the build: a dependency has changed, and the table below with it.
"""

import gzip
import shutil
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

REMOVED: dict[str, tuple[str, ...]] = {
    "tools of onnxruntime that make models; serving runs one": (
        "onnxruntime/backend",
        "onnxruntime/datasets",
        "onnxruntime/quantization",
        "onnxruntime/tools",
        "onnxruntime/transformers",
    ),
    "AWS services that are not called: cache and jobs use DynamoDB, S3 and SQS; STS gives credentials": (
        "botocore/data/*/",
        "boto3/data",
        "boto3/examples",
    ),
    "a second page of documentation, which no route shows": ("fastapi_offline/static/redoc*",),
    "pydantic 1 inside of pydantic 2: FastAPI checks that it exists, and uses no model of it": (
        "pydantic/v1",
    ),
    "tests, stubs and checkers of types": (
        "annotated_types/test_cases.py",
        "anyio/pytest_plugin.py",
        "botocore/stub.py",
        "fastapi/testclient.py",
        "pydantic/mypy.py",
        "starlette/testclient.py",
        "**/*.pyi",
    ),
    "other event loops and other platforms": (
        "anyio/_backends/_trio.py",
        "urllib3/contrib/emscripten",
        "s3transfer/processpool.py",
    ),
    "time zones and calendars: dates of AWS are in UTC": (
        "dateutil/easter.py",
        "dateutil/rrule.py",
        "dateutil/zoneinfo/*.tar.gz",
    ),
    "names of hosts outside of ASCII": ("idna", "idna-*"),
    "lists of installed files, most of them out of date": ("*.dist-info/RECORD",),
    "commands": ("bin",),
}
"""Reason, and patterns below the folder."""

REMOVED_ON_CPU: dict[str, tuple[str, ...]] = {
    "onnxruntime's Python binding: its C library runs the graphs": (
        "onnxruntime/**/*.py",
        "onnxruntime/capi/onnxruntime_pybind11_state.*.so",
        "onnxruntime/capi/libonnxruntime_providers_shared.so",
    ),
}
"""REMOVED, where the C library runs the graphs."""

REMOVED_ON_GPU: dict[str, tuple[str, ...]] = {
    "libraries of onnxruntime for C and C++: the Python binding is linked with its own copy": (
        "onnxruntime/capi/libonnxruntime.so*",
    ),
    "tests, and what only tests load": (
        "numpy/**/tests",
        "numpy/_core/_*_tests.*.so",
        "numpy/_core/_simd.*.so",
    ),
    "parts for compiling with cffi": ("cffi/*.h",),
    "parts for compiling against numpy, or for Fortran": (
        "numpy/**/*.pxd",
        "numpy/_core/include",
        "numpy/_core/lib",
        "numpy/f2py",
        "numpy/random/lib",
    ),
    "TensorRT's side of onnxruntime: CUDA's runs the graphs": (
        "onnxruntime/capi/libonnxruntime_providers_tensorrt.so",
    ),
    "parts for compiling against CUDA": (
        "nvidia/**/include",
        "nvidia/**/*.a",
    ),
    "a library that replaces a BLAS of the CPU": ("nvidia/**/libnvblas.so*",),
}
"""REMOVED, where the Python binding runs the graphs on a GPU, with numpy."""

REMOVED_OF_PYARROW: dict[str, tuple[str, ...]] = {
    "parts for compiling against Arrow, and its tests": (
        "pyarrow/include",
        "pyarrow/includes",
        "pyarrow/src",
        "pyarrow/tests",
    ),
    "Arrow's servers": ("pyarrow/*flight*.so*",),
    "a client of S3 beside boto3": ("pyarrow/*_s3*.so*",),
}
"""REMOVED, where pyarrow is among the packages."""

KEPT = tuple(f"botocore/data/{service}" for service in ("dynamodb", "s3", "sns", "sqs", "sts"))


COMPRESSED = (
    "botocore/data/endpoints.json",  # botocore reads gzip as well
    "onnxruntime/ThirdPartyNotices.txt",
)
"""Files that may be stored under gzip."""


def main(folder: Path, removed: dict[str, tuple[str, ...]]) -> None:
    """Removes all files that a table names, and prints their size."""
    needed_files = {folder / path for path in KEPT}
    if missing := [str(path) for path in sorted(needed_files) if not path.exists()]:
        sys.exit(f"Serving needs {missing}, which is missing. Correct KEPT in functions/slim.py.")
    for why, patterns in removed.items():
        removed_bytes = sum(_remove(set(_match(folder, pattern)) - needed_files) for pattern in patterns)
        _report(removed_bytes, why)


def compress(folder: Path) -> None:
    """Replaces the files in `COMPRESSED` by gzip files."""
    for name in COMPRESSED:
        [path] = _match(folder, name)
        content = path.read_bytes()
        packed = gzip.compress(content, mtime=0)
        path.with_name(f"{path.name}.gz").write_bytes(packed)
        path.unlink()
        _report(len(content) - len(packed), f"{name}, compressed")


def cut_symbols(folder: Path) -> None:
    """Removes the ends of libraries, which only debuggers and linkers read: loaded parts do not move."""
    libraries = [path for path in folder.glob("**/*.so*") if path.is_file() and not path.is_symlink()]
    _report(sum(map(_cut, libraries)), "symbols for debuggers")


def _cut(library: Path) -> int:
    """Truncates an ELF file after its last segment, and removes its section table. Returns the saved
    bytes.
    """
    with library.open("r+b") as file:
        content = file.read()
        if content[:6] != b"\x7fELF\x02\x01":
            sys.exit(f"{library} is not a 64-bit ELF library. Correct cut_symbols in functions/slim.py.")
        (first,) = struct.unpack_from("<Q", content, 32)
        size, count = struct.unpack_from("<HH", content, 54)
        segments = [struct.unpack_from("<8xQ16xQ", content, first + size * i) for i in range(count)]
        end: int = max(first + size * count, *(offset + length for offset, length in segments))
        file.seek(40)
        file.write(bytes(8))  # place of the section table
        file.seek(58)
        file.write(bytes(6))  # size and number of sections, and the index of their names
        file.truncate(end)
    return len(content) - end


def _report(saved_bytes: int, why: str) -> None:
    print(f"{saved_bytes / 1e6:6.1f} MB  {why}")


def _match(folder: Path, pattern: str) -> list[Path]:
    paths = list(folder.glob(pattern))
    if not paths:
        sys.exit(f"{pattern} matches nothing below {folder}. Correct REMOVED in functions/slim.py.")
    return paths


def _remove(paths: Iterable[Path]) -> int:
    """Removes files and folders; returns their size in bytes."""
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
    by_device = REMOVED_ON_GPU if "--gpu" in sys.argv else REMOVED_ON_CPU
    of_pyarrow = REMOVED_OF_PYARROW if (at / "pyarrow").exists() else {}
    main(at, REMOVED | by_device | of_pyarrow)
    compress(at)
    cut_symbols(at)
