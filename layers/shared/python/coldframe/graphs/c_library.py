"""Graphs that run in onnxruntime's C library."""

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from ctypes import byref, c_char_p, c_int, c_int64, c_size_t, c_void_p
from typing import Any

from coldframe.graphs.c_api import Library
from coldframe.graphs.graph import KIND_BYTES, SESSION_SETTINGS, GraphError, GraphFile, Kind, Tensor

_NO_OPTIMIZATION = 0  # graphs are optimised when they are built
_TYPE_NUMBERS: Mapping[Kind, int] = {"f": 1, "H": 4, "h": 5, "i": 6, "q": 7, "d": 11}


class LibraryGraph:
    """A graph in a session of the C library. Safe for threads: a session may run in several at once.

    https://github.com/microsoft/onnxruntime/issues/13571, read 2026-11-21
    """

    def __init__(self, library: Library, file: GraphFile) -> None:
        """Raises GraphError when the file is not a graph that this library can run."""
        self._library = library
        self._session = 0
        options = library.make("CreateSessionOptions")
        try:
            _set_options(library, options, file)
            self._session = library.make("CreateSession", library.environment, bytes(file.path), options)
        finally:
            library.release("SessionOptions", options)
        self._outputs = _names(list(file.outputs))
        self._kinds = list(file.outputs.values())
        self._constants: dict[str, Tensor] = dict(file.constants)  # as long as their values point at them
        self._values: dict[str, int] = {}
        for name, tensor in self._constants.items():
            self._values[name] = _value_of(library, tensor)

    def run(self, inputs: Mapping[str, Tensor]) -> list[bytes]:
        """The values of each output. Raises GraphError."""
        library = self._library
        arguments: list[int] = []
        outputs = (c_void_p * len(self._kinds))()
        try:
            for tensor in inputs.values():
                arguments.append(_value_of(library, tensor))
            names = _names([*inputs, *self._values])
            values = (c_void_p * len(names))(*arguments, *self._values.values())
            library.call(
                "Run", self._session, None, names, values, len(names), self._outputs, len(outputs), outputs
            )
            return [_content(library, value, kind) for value, kind in zip(outputs, self._kinds, strict=True)]
        finally:
            for value in [*arguments, *outputs]:
                if value:
                    library.release("Value", value)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if is_finalizing():
            return  # a thread may still be in a run, and the system takes everything back
        for value in getattr(self, "_values", {}).values():
            self._library.release("Value", value)
        if getattr(self, "_session", 0):
            self._library.release("Session", self._session)


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
    number, count = c_int(), c_size_t()
    facts = library.make("GetTensorTypeAndShape", value)
    try:
        library.call("GetTensorElementType", facts, byref(number))
        library.call("GetTensorShapeElementCount", facts, byref(count))
    finally:
        library.release("TensorTypeAndShapeInfo", facts)
    if number.value != _TYPE_NUMBERS[kind]:
        raise GraphError(f"An output has the type {number.value}, expected {_TYPE_NUMBERS[kind]}.")
    return ctypes.string_at(library.make("GetTensorMutableData", value), count.value * KIND_BYTES[kind])
