"""The contract under any input: a good answer, or a problem that names the sender's mistake."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe.api.api import Api, Request
from coldframe.config import Settings
from coldframe.timing import StartMark
from tests.conftest import served, tiny_predictor

FOUND = sorted((Path(__file__).parents[4] / "fixtures" / "found").glob("*.bin"))
ROUTES = [
    "/v1/predict",
    "/v1/embeddings",
    "/v2/models/tiny/infer",
    "/v2/models/topics-first/infer",
]
MISTAKES = {400, 404, 405, 413, 415, 422}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3)
    ),
    max_leaves=8,
)
numbers = st.floats(allow_nan=False, width=32) | st.integers(-(10**40), 10**40)
names = st.sampled_from(["text", "embedding", "label", "scores", "probability", "other"])
shapes = st.lists(st.sampled_from([0, 1, 2, 8, 16, -1, 2**70]) | st.integers(), max_size=3)
parameters = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "binary_data_size": st.integers(-2, 80),
        "binary_data": st.booleans(),
        "binary_data_output": st.booleans(),
        "classification": st.integers(0, 3),
        "shared_memory_region": st.text(max_size=3),
    },
)
inputs = st.fixed_dictionaries(
    {
        "name": names,
        "shape": shapes | st.sampled_from([[1], [2], [1, 8], [2, 8]]),
        "datatype": st.sampled_from(["BYTES", "FP32", "INT64", "x"]),
    },
    optional={
        "parameters": parameters,
        "data": st.lists(st.text(max_size=5), max_size=3)
        | st.lists(numbers, min_size=8, max_size=8)
        | st.lists(st.lists(numbers, min_size=8, max_size=8), max_size=2)
        | json_values,
    },
)
infer_requests = st.fixed_dictionaries(
    {"inputs": st.lists(inputs, max_size=2)},
    optional={
        "outputs": st.lists(
            st.fixed_dictionaries({"name": names}, optional={"parameters": parameters}), max_size=3
        ),
        "parameters": parameters,
        "id": st.text(max_size=5),
    },
)
embedding_requests = st.fixed_dictionaries(
    {"input": st.text(max_size=9) | st.lists(st.text(max_size=9) | st.integers(), max_size=4) | json_values},
    optional={
        "model": st.text(max_size=300) | st.none(),
        "encoding_format": st.sampled_from(["float", "base64", "hex", None]),
        "dimensions": st.sampled_from([8, 384, 0, None]),
        "user": st.text(max_size=4),
        "other": json_values,
    },
)
headers = st.fixed_dictionaries(
    {},
    optional={
        "content-type": st.sampled_from(["", "application/json", "application/octet-stream", "image/png"]),
        "content-encoding": st.sampled_from(["", "identity", "gzip", "br"]),
        "inference-header-content-length": st.integers(-3, 300).map(str) | st.text(max_size=3),
    },
)


def send(path: str, body: bytes, named: dict[str, str], method: str = "POST") -> int:
    """The status of the answer, which must hold together whatever it is."""
    api = Api(
        served(tiny_predictor()),
        Settings(log_level="off", max_texts=100, max_decompressed_bytes=10_000),
        StartMark(),
    )
    reply = api.answer(Request(method, path, named, body))
    length = reply.headers.get("inference-header-content-length")
    content = json.loads(reply.body[: int(length)] if length else reply.body)
    assert reply.status == 200 or reply.status in MISTAKES, content
    assert content.get("status", reply.status) == reply.status
    for output in content.get("outputs", []):
        assert None not in output.get("data", []), "a number that JSON cannot write"
    if length:
        sizes = [output.get("parameters", {}).get("binary_data_size", 0) for output in content["outputs"]]
        assert int(length) + sum(sizes) == len(reply.body)
    return reply.status


@given(
    st.sampled_from(ROUTES),
    st.binary(max_size=60)
    | (json_values | embedding_requests | infer_requests).map(json.dumps).map(str.encode),
    headers,
)
def test_never_a_500(path: str, body: bytes, named: dict[str, str]) -> None:
    """Whatever is sent to whichever route, compressed or not, no defect shows."""
    if named.get("content-encoding") == "gzip" and len(body) % 2:
        body = gzip.compress(body)
    send(path, body, named)


@given(st.sampled_from(ROUTES[2:]), infer_requests, st.binary(max_size=80))
def test_never_a_500_on_tensors(path: str, asked: Any, content: bytes) -> None:
    """Neither does one with any bytes after the JSON part."""
    header = json.dumps(asked).encode()
    send(path, header + content, {"inference-header-content-length": str(len(header))})


@given(st.lists(st.text(max_size=9), min_size=1, max_size=4), st.booleans(), st.booleans())
def test_good_tensors(texts: list[str], binary: bool, binary_output: bool) -> None:
    """Every list of Unicode texts is answered, whichever way it is sent and asked for."""
    try:
        encoded = [text.encode() for text in texts]
    except UnicodeEncodeError:
        encoded, texts = [b"a"], ["a"]
    tensor: dict[str, Any] = {"name": "text", "shape": [len(texts)], "datatype": "BYTES"}
    content = b"".join(len(item).to_bytes(4, "little") + item for item in encoded) if binary else b""
    tensor |= {"parameters": {"binary_data_size": len(content)}} if binary else {"data": texts}
    asked = {"inputs": [tensor], "parameters": {"binary_data_output": binary_output}}
    header = json.dumps(asked).encode()
    named = {"inference-header-content-length": str(len(header))} if binary else {}
    assert [send(path, header + content, named) for path in ROUTES[2:]] == [200, 200]


@settings(max_examples=50)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=8, max_size=8))
def test_any_finite_row(row: list[float]) -> None:
    """A finite embedding is answered, or refused as too large; numpy warns of nothing on the way."""
    content = np.array(row, dtype="<f4").tobytes()
    tensor = {"name": "embedding", "shape": [1, 8], "datatype": "FP32"}
    header = json.dumps({"inputs": [tensor | {"parameters": {"binary_data_size": 32}}]}).encode()
    named = {"inference-header-content-length": str(len(header))}
    assert send("/v2/models/topics-first/infer", header + content, named) in {200, 422}


@given(st.sampled_from(["GET", "POST", "PUT", "HEAD", "x"]), st.text(max_size=20).map("/v2/models/".__add__))
def test_any_path(method: str, path: str) -> None:
    """No path and no method shows a defect."""
    send(path, b"", {}, method)


def test_found_by_fuzzing() -> None:
    """Inputs that once showed a defect show none: a JSON line with route and headers, then the body."""
    for path in FOUND:
        line, _, body = path.read_bytes().partition(b"\n")
        asked = json.loads(line)
        send(asked["path"], body, asked["headers"])
