"""Inputs and outputs of a graph, for the C library and the Python binding."""

from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from coldframe.errors import BundleError

Kind: TypeAlias = str
"""Type of values, by its letter in `array`: f float32, d float64, h int16, H uint16, i int32, q int64."""

KIND_BYTES: Mapping[Kind, int] = {"f": 4, "d": 8, "h": 2, "H": 2, "i": 4, "q": 8}
"""Bytes of one value of each kind."""


class GraphError(BundleError):
    """onnxruntime cannot load or run a graph. The message is onnxruntime's own, and contains no text."""


class Tensor(NamedTuple):
    """Values of one kind, row by row, at least one.

    content: bytes of the whole shape. A file is mapped with `ACCESS_COPY`: the C library needs an address.
    """

    kind: Kind
    shape: tuple[int, ...]
    content: "bytes | bytearray | array[int] | array[float] | memoryview[int]"


class GraphFile(NamedTuple):
    """A graph and its loading options.

    output, kind: name of the graph's output, and kind of its values.
    constants: inputs that are the same in every run, such as weights.
    threads: threads of one run.
    """

    path: Path
    output: str
    kind: Kind
    constants: Mapping[str, Tensor] = {}
    threads: int = 1


SESSION_SETTINGS: Mapping[str, str] = {
    "session.use_memory_mapped_ort_model": "1",
    "session.use_ort_model_bytes_for_initializers": "1",
}
"""onnxruntime's settings of each session: weights stay in the page cache, without a copy."""


class Graph(Protocol):
    """A loaded graph. Safe for threads: any number of them may run it at once."""

    def run(self, inputs: Mapping[str, Tensor], shape: tuple[int, ...]) -> bytes:
        """The values of the output, which has this shape. Raises GraphError."""
