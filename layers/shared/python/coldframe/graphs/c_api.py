"""onnxruntime's C API, driven by `ctypes`: neither numpy nor the Python binding is imported.

`OrtGetApiBase` returns a table of functions. Later releases append to it and never change earlier entries:
https://onnxruntime.ai/docs/reference/compatibility.html, read 2026-11-23. Places in the table and argument
types are taken from `onnxruntime_c_api.h`, version 16 of the API.

Every function that can fail returns a status: null, or an object with a message that the caller releases.
`ctypes` releases the interpreter's lock during each call.

A cold start imports this module before any other: it needs `ctypes` alone, so that onnxruntime starts beside
all other imports.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import sys
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p

TYPE_CHECKING = False  # `typing` is imported later
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from coldframe.graphs.graph import GraphError

_API_VERSION = 16
"""The oldest version with all functions used here; onnxruntime 1.16 and later support it."""

_LOG_CRASHES = 4  # errors are raised, and need no second line in the log
_ARENA, _DEFAULT_MEMORY = 1, 0

_status = c_void_p
_out = POINTER(c_void_p)
_FUNCTIONS: dict[str, tuple[int, Any, tuple[Any, ...]]] = {
    "GetErrorMessage": (2, c_char_p, (c_void_p,)),
    "CreateEnv": (3, _status, (c_int, c_char_p, _out)),
    "DisableTelemetryEvents": (6, _status, (c_void_p,)),
    "CreateSession": (7, _status, (c_void_p, c_char_p, c_void_p, _out)),
    "Run": (
        9,
        _status,
        (c_void_p, c_void_p, POINTER(c_char_p), _out, c_size_t, POINTER(c_char_p), c_size_t, _out),
    ),
    "CreateSessionOptions": (10, _status, (_out,)),
    "SetSessionGraphOptimizationLevel": (23, _status, (c_void_p, c_int)),
    "SetIntraOpNumThreads": (24, _status, (c_void_p, c_int)),
    "SetInterOpNumThreads": (25, _status, (c_void_p, c_int)),
    "CreateTensorWithDataAsOrtValue": (
        49,
        _status,
        (c_void_p, c_void_p, c_size_t, POINTER(c_int64), c_size_t, c_int, _out),
    ),
    "CreateCpuMemoryInfo": (69, _status, (c_int, c_int, _out)),
    "ReleaseEnv": (92, None, (c_void_p,)),
    "ReleaseStatus": (93, None, (c_void_p,)),
    "ReleaseSession": (95, None, (c_void_p,)),
    "ReleaseValue": (96, None, (c_void_p,)),
    "ReleaseSessionOptions": (100, None, (c_void_p,)),
    "AddSessionConfigEntry": (130, _status, (c_void_p, c_char_p, c_char_p)),
}
"""Name, place in the table, result and arguments of each function used here."""


class _ApiBase(ctypes.Structure):
    _fields_ = [  # ctypes requires a list
        ("GetApi", CFUNCTYPE(c_void_p, c_uint32)),
        ("GetVersionString", CFUNCTYPE(c_char_p)),
    ]


def _refuse_cut_off(path: str) -> None:
    """Raises OSError if the end of an ELF file is missing: a process that maps it dies of SIGBUS.

    The table of sections is its last part. Byte 40 has the table's offset, byte 58 the size of an entry,
    and byte 60 the number of entries (ELF-64, little-endian).
    """
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123  (`pathlib` is imported later)
        header = file.read(64)
        file_bytes = os.fstat(file.fileno()).st_size
    if header[:6] != b"\x7fELF\x02\x01" or len(header) < 64:
        return
    offset, size, number = (
        int.from_bytes(header[start:end], "little") for start, end in ((40, 48), (58, 60), (60, 62))
    )
    if file_bytes < (whole_bytes := offset + size * number):
        raise OSError(f"{file_bytes:,} of its {whole_bytes:,} bytes are there")


class Library:
    """The loaded library and its one environment, which lives as long as the process. Safe for threads."""

    def __init__(self, path: str) -> None:
        """Raises GraphError for a file that is not a library, or one without this version of the API."""
        # onnxruntime's official packages report usage to their maker unless this is set before:
        # https://github.com/microsoft/onnxruntime/pull/27379
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        try:
            _refuse_cut_off(path)
            base_of = ctypes.CDLL(path).OrtGetApiBase
        except (OSError, AttributeError) as exc:
            raise _graph_error(f"{path} cannot be used: {exc}. Install onnxruntime again.") from exc
        base_of.restype = POINTER(_ApiBase)
        base = base_of().contents
        self.version: str = base.GetVersionString().decode()
        table = base.GetApi(_API_VERSION)
        if not table:
            raise _graph_error(
                f"onnxruntime {self.version} has no C API of version {_API_VERSION}. Install 1.16 or newer."
            )
        places = ctypes.cast(table, POINTER(c_void_p))
        self.functions: dict[str, Callable[..., Any]] = {
            name: CFUNCTYPE(result, *arguments)(places[place])
            for name, (place, result, arguments) in _FUNCTIONS.items()
        }
        self.environment = self.make("CreateEnv", _LOG_CRASHES, b"coldframe")
        self.call("DisableTelemetryEvents", self.environment)
        self.memory = self.make("CreateCpuMemoryInfo", _ARENA, _DEFAULT_MEMORY)

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function that returns a status. Raises GraphError for a status that is not null."""
        status = self.functions[name](*arguments)
        if status:
            raise self.error_of(status)

    def make(self, name: str, *arguments: Any) -> int:
        """Value that a function writes through its last argument, a pointer. Raises GraphError."""
        pointer = c_void_p()
        self.call(name, *arguments, byref(pointer))
        return pointer.value or 0

    def error_of(self, status: int) -> GraphError:
        """The error that a status reports. Releases the status."""
        message = self.functions["GetErrorMessage"](status).decode(errors="replace")
        self.release("Status", status)
        return _graph_error(message)

    def release(self, kind: str, handle: int) -> None:
        """Releases an object that the library created."""
        self.functions[f"Release{kind}"](handle)


_libraries: dict[str, Library] = {}
_loading = _thread.allocate_lock()


def load_library(path: str) -> Library:
    """The library at `path`, loaded once. Raises GraphError."""
    with _loading:  # of two threads, one creates the environment
        if path not in _libraries:
            _libraries[path] = Library(path)
        return _libraries[path]


_PACKAGE = ("onnxruntime", "capi")
_LIBRARY = "libonnxruntime.so."


def library_path() -> str | None:
    """The installed onnxruntime's C library, without importing onnxruntime; None if its wheel has none."""
    for place in sys.path:
        folder = os.path.join(place, *_PACKAGE)  # noqa: PTH118  # pathlib is imported later
        try:
            names = sorted(name for name in os.listdir(folder) if name.startswith(_LIBRARY))  # noqa: PTH208
        except OSError:
            continue
        if names:
            return os.path.join(folder, names[-1])  # noqa: PTH118
    return None


def _graph_error(message: str) -> GraphError:
    from coldframe.graphs.graph import GraphError

    return GraphError(message)
