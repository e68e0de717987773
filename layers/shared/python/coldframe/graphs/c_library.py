"""onnxruntime's C library, called by `ctypes`: neither numpy nor the Python binding is imported.

`OrtGetApiBase` returns a table of functions. Later releases append to it and never change earlier entries:
https://onnxruntime.ai/docs/reference/compatibility.html, read 2026-11-23. Places in the table and argument
types are taken from `onnxruntime_c_api.h`, version 16 of the API.

Every function that can fail returns a status: null, or an object with a message that the caller releases.
`ctypes` releases the interpreter's lock during each call.
"""

import ctypes
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any

from coldframe.graphs.graph import KIND_BYTES, SESSION_SETTINGS, GraphError, GraphFile, Kind, Tensor

_API_VERSION = 16
"""The oldest version with all functions used here; onnxruntime 1.16 and later support it."""

_LOG_CRASHES = 4  # errors are raised, and need no second line in the log
_NO_OPTIMIZATION = 0  # graphs are optimised when they are built
_ARENA, _DEFAULT_MEMORY = 1, 0
_TYPE_NUMBERS: Mapping[Kind, int] = {"f": 1, "H": 4, "h": 5, "i": 6, "q": 7, "d": 11}

_status = c_void_p
_out = POINTER(c_void_p)
_FUNCTIONS: Mapping[str, tuple[int, Any, tuple[Any, ...]]] = {
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
    "GetTensorMutableData": (51, _status, (c_void_p, _out)),
    "GetTensorElementType": (60, _status, (c_void_p, POINTER(c_int))),
    "GetTensorShapeElementCount": (64, _status, (c_void_p, POINTER(c_size_t))),
    "GetTensorTypeAndShape": (65, _status, (c_void_p, _out)),
    "CreateCpuMemoryInfo": (69, _status, (c_int, c_int, _out)),
    "ReleaseEnv": (92, None, (c_void_p,)),
    "ReleaseStatus": (93, None, (c_void_p,)),
    "ReleaseSession": (95, None, (c_void_p,)),
    "ReleaseValue": (96, None, (c_void_p,)),
    "ReleaseTensorTypeAndShapeInfo": (99, None, (c_void_p,)),
    "ReleaseSessionOptions": (100, None, (c_void_p,)),
    "AddSessionConfigEntry": (130, _status, (c_void_p, c_char_p, c_char_p)),
}
"""Name, place in the table, result and arguments of each function used here."""


class _ApiBase(ctypes.Structure):
    _fields_ = [  # ctypes requires a list
        ("GetApi", CFUNCTYPE(c_void_p, c_uint32)),
        ("GetVersionString", CFUNCTYPE(c_char_p)),
    ]


class Library:
    """The loaded library and its one environment, which lives as long as the process. Safe for threads."""

    def __init__(self, path: str) -> None:
        """Raises GraphError for a file that is not a library, or one without this version of the API."""
        # onnxruntime's official packages report usage to their maker unless this is set before:
        # https://github.com/microsoft/onnxruntime/pull/27379
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        try:
            base_of = ctypes.CDLL(path).OrtGetApiBase
        except (OSError, AttributeError) as exc:
            raise GraphError(f"{path} cannot be used: {exc}. Install onnxruntime again.") from exc
        base_of.restype = POINTER(_ApiBase)
        base = base_of().contents
        self.version: str = base.GetVersionString().decode()
        table = base.GetApi(_API_VERSION)
        if not table:
            raise GraphError(
                f"onnxruntime {self.version} has no C API of version {_API_VERSION}. Install 1.16 or newer."
            )
        places = ctypes.cast(table, POINTER(c_void_p))
        self._functions: dict[str, Callable[..., Any]] = {
            name: CFUNCTYPE(result, *arguments)(places[place])
            for name, (place, result, arguments) in _FUNCTIONS.items()
        }
        self.environment = self.make("CreateEnv", _LOG_CRASHES, b"coldframe")
        self.call("DisableTelemetryEvents", self.environment)
        self.memory = self.make("CreateCpuMemoryInfo", _ARENA, _DEFAULT_MEMORY)

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function that returns a status. Raises GraphError for a status that is not null."""
        status = self._functions[name](*arguments)
        if status:
            message = self._functions["GetErrorMessage"](status).decode(errors="replace")
            self.release("Status", status)
            raise GraphError(message)

    def make(self, name: str, *arguments: Any) -> int:
        """Value that a function writes through its last argument, a pointer. Raises GraphError."""
        pointer = c_void_p()
        self.call(name, *arguments, byref(pointer))
        return pointer.value or 0

    def release(self, kind: str, handle: int) -> None:
        """Releases an object that the library created."""
        self._functions[f"Release{kind}"](handle)

    @contextmanager
    def made(self, kind: str, name: str, *arguments: Any) -> Iterator[int]:
        """An object for the block, released after it."""
        handle = self.make(name, *arguments)
        try:
            yield handle
        finally:
            self.release(kind, handle)


class LibraryGraph:
    """A graph in a session of the C library. Safe for threads: a session may run in several at once.

    https://github.com/microsoft/onnxruntime/issues/13571, read 2026-11-21
    """

    def __init__(self, library: Library, file: GraphFile) -> None:
        """Raises GraphError when the file is not a graph that this library can run."""
        self._library = library
        self._session = 0
        with library.made("SessionOptions", "CreateSessionOptions") as options:
            _set_options(library, options, file)
            self._session = library.make("CreateSession", library.environment, bytes(file.path), options)
        self._outputs = _names(list(file.outputs))
        self._kinds = list(file.outputs.values())
        self._constants: dict[str, Tensor] = dict(file.constants)  # as long as their values point at them
        self._values: dict[str, int] = {}
        for name, tensor in self._constants.items():
            self._values[name] = _value_of(library, tensor)

    def run(self, inputs: Mapping[str, Tensor]) -> list[bytes]:
        """The values of each output. Raises GraphError."""
        library, values_in = self._library, []
        outputs = (c_void_p * len(self._kinds))()
        try:
            for tensor in inputs.values():
                values_in.append(_value_of(library, tensor))
            names = _names([*inputs, *self._values])
            values = (c_void_p * len(names))(*values_in, *self._values.values())
            library.call(
                "Run", self._session, None, names, values, len(names), self._outputs, len(outputs), outputs
            )
            return [_content(library, value, kind) for value, kind in zip(outputs, self._kinds, strict=True)]
        finally:
            for value in [*values_in, *outputs]:
                if value:
                    library.release("Value", value)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if is_finalizing():
            return  # a thread may still be in a run, and the system takes everything back
        for value in getattr(self, "_values", {}).values():
            self._library.release("Value", value)
        if getattr(self, "_session", 0):
            self._library.release("Session", self._session)


_loading = threading.Lock()


def load_library(path: str) -> Library:
    """The library at `path`, loaded once. Raises GraphError."""
    with _loading:  # of two threads, one creates the environment
        return _load(path)


@functools.cache
def _load(path: str) -> Library:
    return Library(path)


def _set_options(library: Library, options: int, file: GraphFile) -> None:
    library.call("SetIntraOpNumThreads", options, file.threads)
    library.call("SetInterOpNumThreads", options, 1)
    library.call("SetSessionGraphOptimizationLevel", options, _NO_OPTIMIZATION)
    for name, value in SESSION_SETTINGS.items():
        library.call("AddSessionConfigEntry", options, name.encode(), value.encode())


def _names(names: Sequence[str]) -> "ctypes.Array[c_char_p]":
    return (c_char_p * len(names))(*(name.encode() for name in names))


def _value_of(library: Library, tensor: Tensor) -> int:
    """A value over the tensor's own memory, which must outlive the value."""
    shape = (c_int64 * len(tensor.shape))(*tensor.shape)
    size = KIND_BYTES[tensor.kind]
    for dimension in tensor.shape:
        size *= dimension
    address = _address(tensor.content, size)
    kind = _TYPE_NUMBERS[tensor.kind]
    return library.make(
        "CreateTensorWithDataAsOrtValue", library.memory, address, size, shape, len(tensor.shape), kind
    )


def _address(content: Any, size: int) -> int:
    """Address of `size` bytes of content. Raises ValueError for content of another size."""
    view = memoryview(content)
    if view.nbytes != size:
        raise ValueError(f"Found {view.nbytes} bytes, expected {size}. Give the tensor its true shape.")
    if isinstance(content, bytes):
        return ctypes.cast(c_char_p(content), c_void_p).value or 0
    return ctypes.addressof(ctypes.c_char.from_buffer(content))


def _content(library: Library, value: int, kind: Kind) -> bytes:
    """A copy of a value's content. Raises GraphError for content of another kind."""
    with library.made("TensorTypeAndShapeInfo", "GetTensorTypeAndShape", value) as facts:
        number, count = c_int(), c_size_t()
        library.call("GetTensorElementType", facts, byref(number))
        library.call("GetTensorShapeElementCount", facts, byref(count))
    if number.value != _TYPE_NUMBERS[kind]:
        raise GraphError(
            f"An output has the type {number.value}, expected {_TYPE_NUMBERS[kind]}. Build the graph again."
        )
    return ctypes.string_at(library.make("GetTensorMutableData", value), count.value * KIND_BYTES[kind])
