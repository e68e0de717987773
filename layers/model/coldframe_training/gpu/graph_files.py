"""The two graphs as files: each with its operations, and one file with the weights that both use."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from onnx import ModelProto, TensorProto, numpy_helper
from onnx.external_data_helper import set_external_data

_ALIGNED = 4096  # bytes, a page: where a system maps a weight instead of reading it
_SMALL_BYTES = 1024  # stays in the graph: the shape of something may depend on its value


def write_graphs(graphs: Sequence[tuple[ModelProto, Path]], weights: Path) -> str:
    """Writes each graph, and to `weights` every large constant of theirs, once.

    weights: in the folder of the graphs. Returns `sha256:<hex>` of all.
    """
    digest = hashlib.sha256()
    places: dict[bytes, int] = {}
    with weights.open("wb") as file:
        for model, path in graphs:
            for tensor in model.graph.initializer:
                _move_out(tensor, file, places)
            content = model.SerializeToString(deterministic=True)
            path.write_bytes(content)
            digest.update(content)
    for content_digest in places:  # in the order of their places
        digest.update(content_digest)
    return f"sha256:{digest.hexdigest()}"


def _move_out(tensor: TensorProto, file: IO[bytes], places: dict[bytes, int]) -> None:
    """Puts a large constant into `file`, unless an equal one is there. places: where, by its digest."""
    content = numpy_helper.to_array(tensor).tobytes()
    if len(content) <= _SMALL_BYTES:
        return
    digest = hashlib.sha256(content).digest()
    if digest not in places:
        file.write(bytes(-file.tell() % _ALIGNED))
        places[digest] = file.tell()
        file.write(content)
    tensor.ClearField("int32_data")
    tensor.raw_data = content
    set_external_data(tensor, Path(file.name).name, offset=places[digest], length=len(content))
    tensor.ClearField("raw_data")
