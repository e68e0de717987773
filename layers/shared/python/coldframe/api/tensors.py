"""Tensors of the Open Inference Protocol: JSON and binary to texts and vectors, and back.

The binary form is defined at
https://docs.nvidia.com/deeplearning/triton-inference-server/user-guide/docs/protocol/extension_binary_data.html
(read 2026-11): little-endian, row by row, after the JSON; each element of BYTES follows its length in four
bytes.
"""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, TypeAlias

from coldframe.api.inference_schemas import InferInput, InferOutput, OutputParameters
from coldframe.errors import Invalid, Malformed, TooLarge, echo
from coldframe.vectors import VALUE_BYTES, Vector, little_endian, to_floats

_LENGTH_BYTES = 4
_DATATYPES = {f"{kind}{bits}" for kind in ("INT", "UINT", "FP") for bits in (8, 16, 32, 64)} | {
    "BF16",
    "BOOL",
    "BYTES",
}
_WHOLE = 1.5 * 2**52  # adding it to a float64 and subtracting it again rounds to the nearest whole number


class Floats(NamedTuple):
    """An FP32 tensor of any shape, its values row by row."""

    shape: list[int]
    vector: Vector


OutputValues: TypeAlias = list[str] | Floats
"""BYTES (n,) or FP32 of any shape."""


@dataclass(frozen=True)
class InputTensor:
    """An input with its data: elements of JSON, or raw bytes."""

    name: str
    datatype: str
    shape: list[int]
    data: Sequence[str | float | list[float]] | bytes


def split_body(body: bytes, header_length: str | None) -> tuple[bytes, bytes]:
    """JSON and binary data of a request.

    header_length: value of `Inference-Header-Content-Length`; None: all of the body is JSON.
    Raises Malformed when it does not fit the body.
    """
    if header_length is None:
        return body, b""
    length = int(header_length) if header_length.isascii() and header_length.isdigit() else -1
    if not 0 < length <= len(body):
        raise Malformed(
            "Inference-Header-Content-Length is not a number of bytes within the body, which has"
            f" {len(body)}. Send the length of the JSON part."
        )
    return body[:length], body[length:]


def find_inputs(inputs: Sequence[InferInput], binary: bytes) -> dict[str, InputTensor]:
    """Inputs by name, each with its data. `binary` holds the binary data, in the order of the inputs.

    Raises Invalid for a repeated name, for an input without data, and when sizes do not add up.
    """
    by_name: dict[str, InputTensor] = {}
    position = 0
    for tensor in inputs:
        if tensor.name in by_name:
            raise Invalid(f"Input {echo(tensor.name)} occurs twice. Send each input once.")
        size = tensor.parameters.binary_data_size if tensor.parameters else None
        data: Sequence[str | float | list[float]] | bytes
        if size is None:
            if tensor.data is None:
                raise Invalid(
                    f"Input {echo(tensor.name)} has neither `data` nor `binary_data_size`. Send one."
                )
            data = tensor.data
        else:
            if tensor.data is not None:
                raise Invalid(f"Input {echo(tensor.name)} has both `data` and `binary_data_size`. Send one.")
            data = binary[position : position + size]
            position += size
        by_name[tensor.name] = InputTensor(tensor.name, tensor.datatype, tensor.shape, data)
    if position != len(binary):
        raise Invalid(
            f"Found {len(binary)} bytes after the JSON part, expected {position}: the sum of all"
            " `binary_data_size`. Inference-Header-Content-Length says where the JSON part ends."
        )
    return by_name


def read_texts(tensor: InputTensor, max_rows: int) -> list[str]:
    """The texts of a BYTES [n] tensor. Raises Invalid or TooLarge."""
    rows = _rows(tensor, "BYTES", (), max_rows)
    texts = (
        _split_bytes(tensor.name, tensor.data, rows)
        if isinstance(tensor.data, bytes)
        else [value for value in tensor.data if isinstance(value, str)]
    )
    if not isinstance(tensor.data, bytes) and len(texts) != len(tensor.data):
        raise Invalid(f'Input "{tensor.name}" is BYTES. Send `data` as a list of strings.')
    _check_count(tensor.name, len(texts), rows, "elements")
    return texts


def read_matrix(tensor: InputTensor, columns: int, max_rows: int) -> list[Vector]:
    """The rows of an FP32 [n, columns] tensor, all finite. Raises Invalid or TooLarge."""
    rows = _rows(tensor, "FP32", (columns,), max_rows)
    if isinstance(tensor.data, bytes):
        _check_count(tensor.name, len(tensor.data), rows * columns * VALUE_BYTES, "bytes")
        content = tensor.data
    else:
        numbers = _numbers(tensor.name, tensor.data, columns)
        _check_count(tensor.name, len(numbers), rows * columns, "numbers")
        content = little_endian(numbers.tobytes())
    _check_finite(tensor.name, content, columns)
    size, vector = columns * VALUE_BYTES, little_endian(content)
    return [vector[start : start + size] for start in range(0, len(vector), size)]


def write_output(name: str, values: OutputValues, binary: bool) -> tuple[InferOutput, bytes]:
    """An output of the reply, and its bytes after the JSON."""
    datatype, shape = ("FP32", values.shape) if isinstance(values, Floats) else ("BYTES", [len(values)])
    if binary:
        content = little_endian(values.vector) if isinstance(values, Floats) else _join_bytes(values)
        return InferOutput(name, datatype, shape, parameters=OutputParameters(len(content))), content
    data = short_floats(values.vector) if isinstance(values, Floats) else values
    return InferOutput(name, datatype, shape, data=data), b""


def short_floats(vector: Vector) -> list[float]:
    """Numbers that JSON writes in nine digits at most, and that are read as the same float32.

    In full, a float32 takes up to seventeen digits, since JSON's numbers are float64.
    """
    # Scaled to nine digits before the point, rounded, scaled back: formatting would take four times as long.
    return [
        (value * 1e10 + _WHOLE - _WHOLE) / 1e10
        if 0.01 <= (size := abs(value)) < 0.1
        else (value * 1e9 + _WHOLE - _WHOLE) / 1e9
        if 0.1 <= size < 1
        else (value * 1e11 + _WHOLE - _WHOLE) / 1e11
        if 0.001 <= size < 0.01
        else float(f"{value:.8e}")
        for value in to_floats(vector)
    ]


def _rows(tensor: InputTensor, datatype: str, columns: tuple[int, ...], max_rows: int) -> int:
    """n of a tensor that must have this datatype and the shape [n, *columns]."""
    if tensor.datatype != datatype:
        datatype_name = tensor.datatype if tensor.datatype in _DATATYPES else "something else"
        raise Invalid(f'Input "{tensor.name}" has datatype {datatype_name}, expected {datatype}.')
    expected = ", ".join(["n", *map(str, columns)])
    if len(tensor.shape) != 1 + len(columns) or tuple(tensor.shape[1:]) != columns or not tensor.shape[0]:
        raise Invalid(
            f'Input "{tensor.name}" has shape {tensor.shape}, expected [{expected}] with n of at least 1.'
        )
    rows = tensor.shape[0]
    if rows > max_rows:
        raise TooLarge(f'Input "{tensor.name}" has {rows} rows, expected at most {max_rows}. Send parts.')
    return rows


def _split_bytes(name: str, content: bytes, at_most: int) -> list[str]:
    """Elements, each after its length."""
    texts: list[str] = []
    position = 0
    while position < len(content):
        if len(texts) == at_most:
            raise Invalid(
                f'Input "{name}" has {len(content) - position} bytes after its {at_most} elements.'
                " Expected as many elements as its shape says."
            )
        start = position + _LENGTH_BYTES
        position = start + int.from_bytes(content[position:start], "little")
        if start > len(content) or position > len(content):
            raise Invalid(
                f'Element {len(texts)} of input "{name}" is cut off: expected {_LENGTH_BYTES} bytes of length'
                f" and {position - start} of content, found {len(content) - start + _LENGTH_BYTES} in all."
            )
        try:
            texts.append(content[start:position].decode())
        except UnicodeDecodeError as exc:
            raise Invalid(f'Element {len(texts)} of input "{name}" is not UTF-8.') from exc
    return texts


def _join_bytes(texts: Sequence[str]) -> bytes:
    """Elements, each after its length."""
    encoded = [text.encode() for text in texts]
    return b"".join(len(item).to_bytes(_LENGTH_BYTES, "little") + item for item in encoded)


def _numbers(name: str, data: Sequence[str | float | list[float]], columns: int) -> "array[float]":
    """Numbers of nested rows or of one flat list, as float32; infinite where a number is too large."""
    if data and all(isinstance(row, list) for row in data):
        rows = [row for row in data if isinstance(row, list)]
        for index, row in enumerate(rows):
            _check_count(f"{name}[{index}]", len(row), columns, "numbers")
        return array("f", chain.from_iterable(rows))
    try:
        return array("f", data)  # type: ignore[arg-type]  # anything but a number is refused
    except TypeError as exc:
        raise Invalid(f'Input "{name}" is FP32. Send `data` as numbers, flat or row by row.') from exc


def _check_finite(name: str, content: bytes, columns: int) -> None:
    """Raises Invalid for the first row of a little-endian tensor that has an infinity or a NaN."""
    tops = content[
        VALUE_BYTES - 1 :: VALUE_BYTES
    ]  # the sign of each value, and all bits but the exponent's last
    if b"\x7f" not in tops and b"\xff" not in tops:
        return
    for position, value in enumerate(to_floats(little_endian(content))):
        if not math.isfinite(value):
            raise Invalid(
                f'Row {position // columns} of input "{name}" has an infinity or a NaN.'
                " Send finite FP32 numbers."
            )


def _check_count(name: str, count: int, expected: int, unit: str) -> None:
    if count != expected:
        raise Invalid(f'Input "{name}" has {count} {unit}, expected {expected}, as its shape says.')
