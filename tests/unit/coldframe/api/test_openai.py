"""Embeddings as OpenAI's clients ask for them."""

import base64
import json
from typing import Any

import numpy as np
import pytest

from coldframe.api.api import Api
from coldframe.config import Settings
from coldframe.timing import StartMark
from coldframe_training.embeddings.matrices import to_matrix
from tests.conftest import TinyEncoder, post, served, tiny_predictor

SECRET = "a text that nobody but its sender may read"


def embeddings(api: Api, **asked: Any) -> dict[str, Any]:
    """The answer to a request that must succeed."""
    reply = post(api, asked, path="/v1/embeddings")
    assert reply.status == 200, reply.body
    answer: dict[str, Any] = json.loads(reply.body)
    return answer


def expected(*texts: str) -> Any:
    return to_matrix(tiny_predictor().embed(texts).vectors)


def test_one_text(api: Api) -> None:
    """A string gets a list of one embedding, in OpenAI's shape."""
    answer = embeddings(api, input="abc", model="text-embedding-3-small", user="someone")
    assert (answer["object"], answer["model"]) == ("list", "text-embedding-3-small")
    (item,) = answer["data"]
    assert (item["object"], item["index"], len(item["embedding"])) == ("embedding", 0, 8)
    assert answer["usage"] == {"prompt_tokens": 5, "total_tokens": 5}


def test_many_texts_in_order(api: Api) -> None:
    """A list of strings gets its embeddings in input order, bit for bit those of each alone."""
    texts = ["abc", "abcdefgh", "", "abc"]
    answer = embeddings(api, input=texts)
    assert answer["model"] == "tiny"
    assert [item["index"] for item in answer["data"]] == [0, 1, 2, 3]
    for text, item in zip(texts, answer["data"], strict=True):
        assert np.array_equal(np.float32(item["embedding"]), expected(text)[0])


def test_tokens_of_every_text_count(api: Api) -> None:
    """Usage counts what was sent, though equal texts are embedded once."""
    one = embeddings(api, input="abcdefgh")["usage"]["prompt_tokens"]
    assert embeddings(api, input=["abcdefgh"] * 3)["usage"]["prompt_tokens"] == 3 * one
    encoder = TinyEncoder()
    embedded = tiny_predictor(encoder).embed(["a  b", "a b", "c"])
    assert encoder.tokenized == ["a b", "c"]
    assert (embedded.usage.texts, embedded.usage.unique) == (3, 2)


def test_base64(api: Api) -> None:
    """base64 holds the same numbers, as little-endian float32."""
    answer = embeddings(api, input=["abc", "de"], encoding_format="base64")
    rows = [np.frombuffer(base64.b64decode(item["embedding"]), dtype="<f4") for item in answer["data"]]
    assert np.array_equal(rows, expected("abc", "de"))


def test_fields_may_be_null(api: Api) -> None:
    """Clients that send every field, null where it is not set, are served."""
    embeddings(api, input="a", model=None, encoding_format=None, dimensions=None, user=None)
    embeddings(api, input="a", dimensions=8)


TOKENS = "Found token ids in `input`, which belong to another tokenizer"
BAD_REQUESTS: dict[str, tuple[object, int, str]] = {
    "no body": (b"", 400, 'The body is empty. Send JSON, for instance {"input": "…"}'),
    "no JSON": (b"{", 400, "The body cannot be read as JSON"),
    "no input": ({}, 422, "Object missing required field `input`"),
    "null": ({"input": None}, 422, "Expected `str | array`, got `null` - at `$.input`"),
    "no texts": ({"input": []}, 422, "Expected `array` of length >= 1 - at `$.input`"),
    "tokens": ({"input": [1, 2]}, 422, TOKENS),
    "tokens of many": ({"input": [[1, 2], [3]]}, 422, TOKENS),
    "tokens and texts": ({"input": [1, SECRET]}, 422, "Expected `str`, got `int` - at `$.input[0]`"),
    "format": ({"input": SECRET, "encoding_format": "hex"}, 422, "Invalid enum value"),
    "dimensions": ({"input": SECRET, "dimensions": 4}, 422, "Found dimensions 4, expected 8"),
    "misspelt": (
        {"input": SECRET, "modell": "m"},
        422,
        "Object contains unknown field `modell`. Did you mean `model`?",
    ),
    "too many": ({"input": [SECRET] * 101}, 413, "Found 101 texts, expected at most 100."),
    "surrogate": (b'{"input": "\\ud800"}', 400, "The body cannot be read as JSON"),
}


@pytest.mark.parametrize("case", BAD_REQUESTS)
def test_bad_requests(api: Api, log_lines: list[str], case: str) -> None:
    """Bad input gets its status and a problem that says what was expected; its text goes nowhere."""
    content, status, detail = BAD_REQUESTS[case]
    reply = post(api, content, path="/v1/embeddings")
    assert (reply.status, reply.headers["content-type"]) == (status, "application/problem+json")
    assert json.loads(reply.body)["detail"].startswith(detail)
    assert SECRET not in reply.body.decode() + "".join(log_lines)


def test_too_large_an_answer() -> None:
    """An answer over the limit is refused by what to ask for instead, which then is answered."""
    settings = Settings(max_answer_bytes=2048 + 20_000, log_level="off")
    api = Api(served(tiny_predictor()), settings, StartMark())
    asked = {"input": ["a"] * 150}
    reply = post(api, asked, path="/v1/embeddings")
    problem = json.loads(reply.body)
    assert (reply.status, problem["type"]) == (413, "urn:coldframe:error:AnswerTooLarge")
    assert '"encoding_format": "base64"' in problem["detail"]
    assert post(api, asked | {"encoding_format": "base64"}, path="/v1/embeddings").status == 200
    still = post(api, {"input": ["a"] * 500, "encoding_format": "base64"}, path="/v1/embeddings")
    assert json.loads(still.body)["detail"].endswith("expected at most 22048. Send fewer texts.")
