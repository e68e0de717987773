"""Weights of heads and centroids in mapped files, one file for each.

A file begins with a line of JSON: kind, shape and place of each array by its name. Places count from the end
of
that line. The line is padded with spaces. It and each array begin at a multiple of 64 bytes.
"""

from collections.abc import Mapping
from math import prod
from pathlib import Path

import msgspec
from msgspec import Struct

from coldframe.errors import BundleCorrupt
from coldframe.graphs.graph import KIND_BYTES, Kind, Tensor
from coldframe.model.files import REBUILD, map_file

_ALIGNMENT = 64


class _Place(Struct, frozen=True, array_like=True):
    kind: Kind
    shape: tuple[int, ...]
    start: int


_DECODER = msgspec.json.Decoder(dict[str, _Place])


def read_weights(folder: Path, name: str) -> dict[str, Tensor]:
    """The arrays of a file, mapped. Raises BundleMissing or BundleCorrupt."""
    content = map_file(folder, name)
    line = content.readline()
    try:
        places = _DECODER.decode(line)
        arrays = memoryview(content)[len(line) :]
        return {array: _tensor(arrays, place) for array, place in places.items()}
    except (msgspec.MsgspecError, ValueError) as exc:
        raise BundleCorrupt(f"{folder / name} cannot be read: {exc}. {REBUILD}") from exc


def write_weights(path: Path, arrays: Mapping[str, Tensor]) -> None:
    """Writes a file for `read_weights`."""
    content = bytearray()
    places = {}
    for name, tensor in arrays.items():
        places[name] = _Place(tensor.kind, tensor.shape, len(content))
        content += bytes(tensor.content)
        content += bytes(-len(content) % _ALIGNMENT)
    line = msgspec.json.encode(places)
    padding = b" " * (-(len(line) + 1) % _ALIGNMENT)
    path.write_bytes(line + padding + b"\n" + content)


def _tensor(content: "memoryview[int]", place: _Place) -> Tensor:
    if place.kind not in KIND_BYTES or min(place.shape, default=0) < 1:
        raise ValueError(f"an array has the kind {place.kind!r} and the shape {place.shape}")
    size = KIND_BYTES[place.kind] * prod(place.shape)
    part = content[place.start : place.start + size]
    if place.start < 0 or len(part) != size:
        raise ValueError("an array is not whole")
    return Tensor(place.kind, place.shape, part)
