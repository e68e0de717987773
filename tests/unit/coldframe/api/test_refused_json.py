"""Whole numbers written with a point, and explanations that hold no text."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.api.inference_schemas import InferRequest
from coldframe.api.messages import decode_json
from coldframe.api.refused_json import READ_AGAIN_BYTES, with_whole_numbers
from coldframe.errors import Invalid, RequestError
from coldframe.jobs.records import JobRequest
from coldframe.schemas import EmbeddingsRequest, PredictRequest

PREDICT = msgspec.json.Decoder(PredictRequest)
EMBED = msgspec.json.Decoder(EmbeddingsRequest)
INFER = msgspec.json.Decoder(InferRequest)
JOB = msgspec.json.Decoder(JobRequest)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text('1.0"\\e'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('1.0"\\'), inner),
    max_leaves=20,
)


@given(values)
def test_whole_numbers_mean_the_same(value: Any) -> None:
    """Whatever the JSON: after the points are gone it says the same, strings included."""
    assert json.loads(with_whole_numbers(json.dumps(value).encode())) == value


@given(st.binary(max_size=200))
def test_bytes_that_are_no_json_are_read(body: bytes) -> None:
    """A body that is no JSON does no harm."""
    assert len(with_whole_numbers(body)) <= len(body)


@pytest.mark.parametrize("number", [b"7.0", b"7.00", b"7"])
def test_an_integer_may_have_a_point(number: bytes) -> None:
    """JSON Schema calls 7.0 an integer, and so does the contract, at any depth."""
    asked = decode_json(
        b'{"text": "costs 7.0 \\" or 8.0", "top_k": %s, "budget_ms": %s}' % (number, number), PREDICT, ""
    )
    assert (asked.top_k, asked.budget_ms, asked.text) == (7, 7, 'costs 7.0 " or 8.0')
    assert decode_json(b'{"input": "a", "dimensions": %s}' % number, EMBED, "").dimensions == 7
    tensor = b'{"inputs": [{"name": "text", "datatype": "BYTES", "shape": [%s], "data": ["1.0"]}]}'
    [read] = decode_json(tensor % number, INFER, "").inputs
    assert (read.shape, read.data) == ([7], ["1.0"])


def test_a_long_body_is_not_read_twice() -> None:
    """Reading many megabytes again would take seconds: there the number has to be without a point."""
    body = b'{"text": "%s", "top_k": 7.0}'
    assert decode_json(body % (b"a" * (READ_AGAIN_BYTES - len(body))), PREDICT, "").top_k == 7
    with pytest.raises(Invalid, match="Expected `int`, got `float`"):
        decode_json(body % (b"a" * READ_AGAIN_BYTES), PREDICT, "")


@pytest.mark.parametrize(
    ("decoder", "body", "said"),
    [
        (JOB, {"push": {"webhok": ""}}, r"`webhok` - at `\$.push`\. Did you mean `webhook`\? Fields: "),
        (
            EMBED,
            {"input": "a", "encoding_format": "a secret"},
            r"^Invalid enum value - at `\$.encoding_format`\.",
        ),
        (EMBED, {"input": "a", "encoding_format": "a secret"}, r"Expected one of: float, base64\."),
        (EMBED, {"a secret` - at `$.x": 1}, r"^Object contains an unknown field\. Fields: input, model,"),
    ],
    ids=str,
)
def test_what_is_there_instead_is_named(decoder: Any, body: Any, said: str) -> None:
    """Fields and choices at the place of the error; what was sent only where it is a plain name."""
    with pytest.raises(Invalid, match=said) as caught:
        decode_json(json.dumps(body).encode(), decoder, "")
    assert "secret" not in str(caught.value)
    assert str(caught.value).endswith("Compare it with docs/contract.md, or /openapi.json.")


@given(name=st.text(min_size=1), value=values)
def test_unknown_fields_are_never_echoed_but_as_names(name: str, value: Any) -> None:
    """A name of other than plain characters does not stand in the error."""
    with pytest.raises(RequestError) as caught:
        decode_json(json.dumps({"text": "a", name + " ": value}).encode(), PREDICT, "")
    assert f"`{name} `" not in str(caught.value)
