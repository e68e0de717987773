"""Graphs that run in onnxruntime's C library."""

import math
import sys
from collections.abc import Callable, Mapping
from ctypes import addressof, byref, c_char, c_char_p, c_int64, c_void_p

from coldframe.graphs.c_api import Library
from coldframe.graphs.graph import KIND_BYTES, SESSION_SETTINGS, GraphFile, Kind, Tensor

_NO_OPTIMIZATION = 0  # graphs are optimised when they are built
_CREATE = "CreateTensorWithDataAsOrtValue"
_WRONG_SIZE = "Found {} bytes, expected those of the shape {}. Give the tensor its true shape."
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
        self._output = (c_char_p * 1)(file.output.encode())
        self._kind = file.kind
        self._constants: dict[str, Tensor] = dict(file.constants)  # as long as their values point at them
        self._values: dict[str, int] = {}
        for name, tensor in self._constants.items():
            self._values[name] = _value_of(library, tensor)

    def run(self, inputs: Mapping[str, Tensor], shape: tuple[int, ...]) -> bytes:
        """The output's values. Raises GraphError.

        Every request runs several graphs, so this calls the C functions without helpers between.
        """
        library, functions = self._library, self._library.functions
        output = Tensor(self._kind, shape, bytearray(KIND_BYTES[self._kind] * math.prod(shape)))
        created: list[int | None] = []
        value = c_void_p()
        try:
            for kind, sizes, content in [*inputs.values(), output]:
                view, rank = memoryview(content), len(sizes)
                if view.nbytes != KIND_BYTES[kind] * math.prod(sizes):
                    raise ValueError(_WRONG_SIZE.format(view.nbytes, sizes))
                data = content if isinstance(content, bytes) else addressof(c_char.from_buffer(content))
                dimensions, number = (c_int64 * rank)(*sizes), _TYPE_NUMBERS[kind]
                if status := functions[_CREATE](
                    library.memory, data, view.nbytes, dimensions, rank, number, byref(value)
                ):
                    raise library.error_of(status)
                created.append(value.value)
            names = [name.encode() for name in [*inputs, *self._values]]
            arguments = (c_void_p * len(names))(*created[:-1], *self._values.values())
            sent = self._session, None, (c_char_p * len(names))(*names), arguments, len(names)
            if status := functions["Run"](*sent, self._output, 1, byref(value)):  # the value created last
                raise library.error_of(status)
            return bytes(output.content)
        finally:
            for handle in created:
                functions["ReleaseValue"](handle)

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


def _value_of(library: Library, tensor: Tensor) -> int:
    """A value over the tensor's own memory, which must outlive the value."""
    content, view, rank = tensor.content, memoryview(tensor.content), len(tensor.shape)
    if view.nbytes != KIND_BYTES[tensor.kind] * math.prod(tensor.shape):
        raise ValueError(_WRONG_SIZE.format(view.nbytes, tensor.shape))
    data = content if isinstance(content, bytes) else addressof(c_char.from_buffer(content))
    dimensions, number = (c_int64 * rank)(*tensor.shape), _TYPE_NUMBERS[tensor.kind]
    return library.make(_CREATE, library.memory, data, view.nbytes, dimensions, rank, number)
