"""Tensors in JSON and in binary, and back."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coldframe.api.inference_schemas import InferInput, InputParameters
from coldframe.api.tensors import (
    Floats,
    InputTensor,
    find_inputs,
    read_matrix,
    read_texts,
    short_floats,
    split_body,
    write_output,
)
from coldframe.errors import Invalid, Malformed, TooLarge
from coldframe.vectors import Vector, little_endian, to_floats, to_vector

finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
vectors = st.lists(finite, max_size=20).map(to_vector)
matrices = st.lists(st.lists(finite, min_size=3, max_size=3).map(to_vector), min_size=1, max_size=5)
small = st.floats(-1, 1, width=32, allow_subnormal=False).map(
    lambda value: value if abs(value) > 1e-4 else 0.0
)


def texts_of(data: Any, shape: list[int], datatype: str = "BYTES") -> list[str]:
    return read_texts(InputTensor("text", datatype, shape, data), max_rows=10)


def matrix_of(data: Any, shape: list[int], datatype: str = "FP32") -> list[Vector]:
    return read_matrix(InputTensor("embedding", datatype, shape, data), columns=3, max_rows=10)


def short_by_numpy(vector: Vector) -> list[float]:
    """What `short_floats` gave when numpy computed it."""
    wide = np.frombuffer(vector, np.float32).astype(np.float64)
    magnitude = np.floor(np.log10(np.abs(wide), where=wide != 0, out=np.zeros_like(wide)))
    scale = 10.0 ** (8 - magnitude)
    short: list[float] = (np.rint(wide * scale) / scale).tolist()
    return short


@given(vectors)
def test_short_floats(vector: Vector) -> None:
    """Numbers are written in nine digits at most, and are the same float32 when read again."""
    written = json.dumps(short_floats(vector))
    assert to_vector(json.loads(written)) == vector
    for number in written.strip("[]").split(", "):
        digits = number.split("e")[0].replace(".", "").replace("-", "").strip("0")
        assert len(digits) <= 9


@given(st.lists(small, max_size=20).map(to_vector))
@example(to_vector([0.1, 0.01, 0.001, -0.1, -0.01, -0.001, 1.0, -1.0, 0.0, -0.0]))
@example(
    to_vector([odd / 2**10 for odd in range(103, 1024, 2)])
)  # halfway between two numbers of nine digits
@example(to_vector([odd / 2**13 for odd in range(-819, -82, 2)]))
def test_short_floats_as_numpy_computes_them(vector: Vector) -> None:
    """Embeddings and probabilities are the numbers that numpy made of them, down to the sign of nought."""
    assert list(map(repr, short_floats(vector))) == list(map(repr, short_by_numpy(vector)))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=5))
def test_texts_round_trip(texts: list[str]) -> None:
    """Texts are the same after a way through binary data, and through JSON."""
    shape = [len(texts)]
    output, content = write_output("label", texts, binary=True)
    assert (output.datatype, output.shape, output.data) == ("BYTES", shape, None)
    assert output.parameters is not None
    assert output.parameters.binary_data_size == len(content)
    assert texts_of(content, shape) == texts
    output, content = write_output("label", texts, binary=False)
    assert content == b""
    assert texts_of(output.data, shape) == texts


@given(matrices)
@example([to_vector([3e38, -3e38, 0])])
def test_matrix_round_trip(rows: list[Vector]) -> None:
    """Numbers are the same, to the bit, after a way through binary data, and through JSON."""
    matrix = Floats([len(rows), 3], b"".join(rows))
    _, content = write_output("scores", matrix, binary=True)
    assert matrix_of(content, matrix.shape) == rows
    output, _ = write_output("scores", matrix, binary=False)
    assert output.shape == matrix.shape
    assert matrix_of(output.data, matrix.shape) == rows
    assert matrix_of([to_floats(row) for row in rows], matrix.shape) == rows


@given(matrices)
def test_other_byte_order(rows: list[Vector]) -> None:
    """A machine of the other byte order turns the bytes of each number round, both ways."""
    turned = b"".join(row[at : at + 4][::-1] for row in rows for at in range(0, len(row), 4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.byteorder", "big")
        assert little_endian(b"".join(rows)) == turned
        assert little_endian(turned) == b"".join(rows)
        _, content = write_output("scores", Floats([len(rows), 3], b"".join(rows)), binary=True)
        assert content == turned


def test_binary_layout() -> None:
    """Little-endian lengths and numbers, without padding, as the extension has it."""
    assert write_output("t", ["é", ""], binary=True)[1] == b"\x02\0\0\0\xc3\xa9\0\0\0\0"
    assert write_output("p", Floats([1], to_vector([1.0])), binary=True)[1] == b"\0\0\x80\x3f"


@pytest.mark.parametrize("length", ["0", "-1", "4", "x", "", "1.5", "²", "9" * 30])
def test_header_length(length: str) -> None:
    """The length of the JSON part must lie within the body."""
    with pytest.raises(Malformed, match="Inference-Header-Content-Length"):
        split_body(b"{}x", length)


def test_split_body() -> None:
    """Without the header all is JSON, with it the rest is binary data."""
    assert split_body(b"{}x", None) == (b"{}x", b"")
    assert split_body(b"{}x", "2") == (b"{}", b"x")


def test_inputs_take_their_bytes_in_order() -> None:
    """Each binary input has the bytes that follow those of the inputs before it."""
    inputs = [
        InferInput("a", [1], "BYTES", InputParameters(2)),
        InferInput("b", [1], "BYTES", data=["x"]),
        InferInput("c", [1], "BYTES", InputParameters(3)),
    ]
    found = find_inputs(inputs, b"12345")
    assert [found[name].data for name in "abc"] == [b"12", ["x"], b"345"]


BAD_INPUTS: dict[str, tuple[list[InferInput], bytes, str]] = {
    "twice": ([InferInput("a", [1], "BYTES", data=["x"])] * 2, b"", 'Input "a" occurs twice'),
    "no data": ([InferInput("a", [1], "BYTES")], b"", "neither `data` nor `binary_data_size`"),
    "both": ([InferInput("a", [1], "BYTES", InputParameters(0), ["x"])], b"", "has both"),
    "too few": ([InferInput("a", [1], "BYTES", InputParameters(3))], b"12", "Found 2 bytes .* expected 3"),
    "too many": ([InferInput("a", [1], "BYTES", data=["x"])], b"12", "Found 2 bytes .* expected 0"),
    "huge": ([InferInput("a", [1], "BYTES", InputParameters(1 << 62))], b"1", "Found 1 bytes .* expected 4"),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_bad_inputs(case: str) -> None:
    """Data that is missing, given twice or of another size is refused with what was found."""
    inputs, binary, detail = BAD_INPUTS[case]
    with pytest.raises(Invalid, match=detail):
        find_inputs(inputs, binary)


BAD_TEXTS: dict[str, tuple[Any, list[int], str, str]] = {
    "datatype": (["a"], [1], "FP32", "has datatype FP32, expected BYTES"),
    "no datatype": (["a"], [1], "a secret", "has datatype something else, expected BYTES"),
    "two dimensions": (["a"], [1, 1], "BYTES", r"has shape \[1, 1\], expected \[n\]"),
    "no dimension": (["a"], [], "BYTES", r"has shape \[\], expected \[n\]"),
    "none": ([], [0], "BYTES", r"has shape \[0\], expected \[n\] with n of at least 1"),
    "too few": (["a"], [2], "BYTES", "has 1 elements, expected 2"),
    "too many": (["a", "b"], [1], "BYTES", "has 2 elements, expected 1"),
    "numbers": ([1.0], [1], "BYTES", "Send `data` as a list of strings"),
    "binary too few": (b"\0\0\0\0", [2], "BYTES", "has 1 elements, expected 2"),
    "binary too many": (b"\0\0\0\0" * 2, [1], "BYTES", "has 4 bytes after its 1 elements"),
    "length cut off": (b"\0\0\0", [1], "BYTES", "Element 0 .* is cut off"),
    "content cut off": (
        b"\x05\0\0\0abcd",
        [1],
        "BYTES",
        "4 bytes of length and 5 of content, found 8 in all",
    ),
    "huge length": (b"\xff\xff\xff\xff", [1], "BYTES", "is cut off"),
    "not UTF-8": (b"\x01\0\0\0\xff", [1], "BYTES", 'Element 0 of input "text" is not UTF-8'),
}


@pytest.mark.parametrize("case", BAD_TEXTS)
def test_bad_texts(case: str) -> None:
    """A tensor that is not BYTES [n] is refused with what was found and what was expected."""
    data, shape, datatype, detail = BAD_TEXTS[case]
    with pytest.raises(Invalid, match=detail):
        texts_of(data, shape, datatype)


BAD_MATRICES: dict[str, tuple[Any, list[int], str, str]] = {
    "datatype": ([1, 2, 3], [1, 3], "FP64", "has datatype FP64, expected FP32"),
    "columns": ([1, 2], [1, 2], "FP32", r"has shape \[1, 2\], expected \[n, 3\]"),
    "one dimension": ([1, 2, 3], [3], "FP32", r"has shape \[3\], expected \[n, 3\]"),
    "too few": ([1, 2], [1, 3], "FP32", "has 2 numbers, expected 3"),
    "short row": ([[1, 2, 3], [1]], [2, 3], "FP32", r'"embedding\[1\]" has 1 numbers, expected 3'),
    "strings": (["1", 2, 3], [1, 3], "FP32", "Send `data` as numbers"),
    "mixed": ([[1, 2, 3], 2], [2, 3], "FP32", "Send `data` as numbers"),
    "binary size": (b"1234", [1, 3], "FP32", "has 4 bytes, expected 12"),
    "not a number": (
        to_vector([0, 0, 0, 0, math.nan, 0]),
        [2, 3],
        "FP32",
        "Row 1 .* Send finite",
    ),
    "infinite": (to_vector([-math.inf, 0, 0]), [1, 3], "FP32", "Row 0 .* Send finite"),
    "too large for FP32": ([0, 1e39, 0], [1, 3], "FP32", "Row 0 .* Send finite"),
    "too small for FP32": ([[0, 1, 0], [0, 0, -1e39]], [2, 3], "FP32", "Row 1 .* Send finite"),
    "infinite after large ones": (to_vector([3e38, -3e38, math.inf]), [1, 3], "FP32", "Row 0 .* Send finite"),
}


@pytest.mark.parametrize("case", BAD_MATRICES)
def test_bad_matrices(case: str) -> None:
    """A tensor that is not FP32 [n, d], or not finite, is refused with what was expected."""
    data, shape, datatype, detail = BAD_MATRICES[case]
    with pytest.raises(Invalid, match=detail):
        matrix_of(data, shape, datatype)


def test_too_many_rows() -> None:
    """More rows than the limit are refused before their data is looked at."""
    with pytest.raises(TooLarge, match="has 11 rows, expected at most 10"):
        texts_of([], [11])
    with pytest.raises(TooLarge, match="has 1000000000000 rows"):
        matrix_of([], [10**12, 3])
