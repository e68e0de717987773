"""The HTTP contract, without a server and without a model."""

import gzip
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.api.api import Api, Reply, Request
from coldframe.config import Settings
from coldframe.model.heads import Head
from coldframe.timing import StartMark
from tests.conftest import LABELS, post, served, tiny_manifest, tiny_predictor

SECRET = "a text that nobody but its sender may read"


def body(reply: Reply) -> Any:
    """The JSON of a reply."""
    return json.loads(reply.body)


def test_one_text(api: Api) -> None:
    """A single text gets one prediction by the default head."""
    reply = post(api, {"text": "abc"})
    answer = body(reply)
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert (answer["model"], answer["version"]) == ("topics", tiny_manifest().version)
    (prediction,) = answer["predictions"]
    assert prediction["index"] == 0
    assert set(prediction["heads"]) == {"first"}
    first = prediction["heads"]["first"]
    assert first["label"] in LABELS
    assert first["top"] == [{"label": first["label"], "probability": first["probability"]}]
    assert "scores" not in first


def test_many_texts_in_order(api: Api) -> None:
    """Predictions come in input order, each by every head asked for."""
    texts = ["abcdefgh", "a", "", "abcdefgh"]
    answer = body(post(api, {"texts": texts, "heads": ["second", "first", "second"]}))
    assert [prediction["index"] for prediction in answer["predictions"]] == [0, 1, 2, 3]
    assert list(answer["predictions"][0]["heads"]) == ["second", "first"]
    for text, prediction in zip(texts, answer["predictions"], strict=True):
        (alone,) = body(post(api, {"text": text, "heads": ["second", "first"]}))["predictions"]
        assert alone["heads"] == prediction["heads"]
    assert (answer["usage"]["texts"], answer["usage"]["unique"]) == (4, 3)


def test_top_and_scores(api: Api) -> None:
    """`top_k` lists the best labels first, and all when it is larger; `scores` lists every label."""
    (prediction,) = body(post(api, {"text": "abc", "top_k": 1000, "scores": True}))["predictions"]
    first = prediction["heads"]["first"]
    probabilities = [score["probability"] for score in first["top"]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert {score["label"]: score["probability"] for score in first["top"]} == first["scores"]
    assert set(first["scores"]) == set(LABELS)
    assert len(first["top"]) == len(LABELS)


def test_cold_then_warm(api: Api) -> None:
    """The first answer of an environment is marked cold, the next ones warm."""
    assert [body(post(api, {"text": "a"}))["start"] for _ in range(3)] == ["cold", "warm", "warm"]


def test_server_timing(api: Api) -> None:
    """Every stage is in the Server-Timing header, the total last."""
    header = post(api, {"text": "a"}).headers["server-timing"]
    assert [part.split(";")[0] for part in header.split(", ")] == [
        "cache",
        "tokenize",
        "estimate",
        "encode",
        "heads",
        "total",
    ]


def test_models_and_health(api: Api) -> None:
    """The model list names the model, its encoder and its heads; health names the versions."""
    card, *others = body(api.answer(Request("GET", "/v1/models")))["data"]
    assert (card["id"], card["encoder"], card["is_default"]) == ("topics", "tiny", True)
    assert [other["id"] for other in others] == ["tiny", "topics-first", "topics-second"]
    assert (others[0]["dimension"], others[0]["max_tokens"]) == (8, 20)
    assert "labels" not in others[0]
    assert card["heads"]["first"] == {"accuracy": {"text": 0.5}}
    assert body(api.answer(Request("GET", "/healthz"))) == {
        "status": "ok",
        "version": tiny_manifest().version,
        "models": {"topics": tiny_manifest().version},
    }


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/json; charset=utf-8", "", "text/plain"]
)
def test_content_types_read(api: Api, content_type: str) -> None:
    """JSON is read with its own content type, with none, and with those that clients add unasked."""
    assert post(api, {"text": "a"}, content_type=content_type).status == 200


BAD_REQUESTS: dict[str, tuple[object, int, str]] = {
    "empty body": (b"", 400, "The body is empty. Send JSON"),
    "blank body": (b" \n", 400, "The body is empty"),
    "broken JSON": (b'{"text": ', 400, "The body cannot be read as JSON"),
    "not UTF-8": (b'{"text": "\xff"}', 400, "The body cannot be read as JSON"),
    "lone surrogate": (
        b'{"text": "\\ud800"}',
        400,
        "The body cannot be read as JSON: a string has half of a",
    ),
    "lone surrogate within": (
        b'{"text": "a\\ud800 and so on", "top_k": 1}',
        400,
        "The body cannot be read as JSON: a string has half of a surrogate pair",
    ),
    "trailing bytes": (b'{"text": "a"} x', 400, "The body cannot be read as JSON"),
    "nested deep": (b"[" * 100_000, 422, "Expected `object`, got `array`"),
    "a list": ([SECRET], 422, "Expected `object`, got `array`"),
    "null": (None, 422, "Expected `object`, got `null`"),
    "no text": ({}, 422, 'Expected either "text"'),
    "text and texts": ({"text": SECRET, "texts": [SECRET]}, 422, 'Expected either "text"'),
    "text is a number": ({"text": 1}, 422, "Expected `str`, got `int` - at `$.text`"),
    "text is null": ({"text": None}, 422, "Expected `str`, got `null`"),
    "texts is a string": ({"texts": SECRET}, 422, "Expected `array`, got `str` - at `$.texts`"),
    "a text is null": ({"texts": [SECRET, None]}, 422, "Expected `str`, got `null` - at `$.texts[1]`"),
    "no texts": ({"texts": []}, 422, "Expected `array` of length >= 1"),
    "top_k of zero": ({"text": SECRET, "top_k": 0}, 422, "Expected `int` >= 1 - at `$.top_k`"),
    "top_k too large": ({"text": SECRET, "top_k": 1001}, 422, "Expected `int` <= 1000 - at `$.top_k`"),
    "scores is a word": (
        {"text": SECRET, "scores": "yes"},
        422,
        "Expected `bool`, got `str` - at `$.scores`",
    ),
    "unknown head": (
        {"text": SECRET, "heads": ["third"]},
        422,
        '"third" is not a head of this model. Request one of: auto, first, second.',
    ),
    "a text as head": ({"text": "a", "heads": [SECRET]}, 422, "What was sent is not a head of this model."),
    "no heads": ({"text": SECRET, "heads": []}, 422, "Expected `array` of length >= 1 - at `$.heads`"),
    "misspelt field": (
        {"text": SECRET, "head": "first"},
        422,
        "Object contains unknown field `head`. Did you mean `heads`? Fields: model, text, texts, heads,",
    ),
    "a text as field": ({SECRET: 1}, 422, "Object contains an unknown field. Fields: model, text, texts,"),
    "top_k of a half": ({"text": SECRET, "top_k": 7.5}, 422, "Expected `int`, got `float` - at `$.top_k`"),
    "too many texts": (
        {"texts": [SECRET] * 101},
        413,
        "Found 101 texts, expected at most 100. Send them in parts.",
    ),
    "10,000 texts": ({"texts": [SECRET] * 10_000}, 413, "Found 10000 texts"),
    "10 MB": (
        b'{"text": "' + b"a" * 10_000_000 + b'"}',
        413,
        "The body has 10000012 bytes, expected at most 6291456.",
    ),
}


@pytest.mark.parametrize("case", BAD_REQUESTS)
def test_bad_requests(api: Api, log_lines: list[str], case: str) -> None:
    """Bad input gets its status and a problem that says what was expected; its text goes nowhere."""
    content, status, detail = BAD_REQUESTS[case]
    reply = post(api, content)
    problem = body(reply)
    assert (reply.status, reply.headers["content-type"]) == (status, "application/problem+json")
    assert problem["status"] == status
    assert problem["detail"].startswith(detail)
    assert problem["type"].startswith("urn:coldframe:error:")
    assert SECRET not in reply.body.decode() + "".join(log_lines)


def test_other_media_types(api: Api) -> None:
    """A body declared as something else, or compressed by other means than gzip, is refused by name."""
    assert post(api, {"text": "a"}, content_type="multipart/form-data; boundary=x").status == 415
    assert post(api, {"text": "a"}, content_encoding="br").status == 415


def test_gzip(api: Api) -> None:
    """A body sent with gzip gets the answer of the body itself."""
    compressed = post(api, gzip.compress(b'{"text": "abc"}'), content_encoding="gzip")
    assert body(compressed)["predictions"] == body(post(api, {"text": "abc"}))["predictions"]


def test_too_large_an_answer(log_lines: list[str]) -> None:
    """An answer over the limit is refused by what to ask for instead, which then is answered."""
    engine = Api(served(tiny_predictor()), Settings(max_answer_bytes=8192), StartMark(), log_lines.append)
    asked = {"texts": [SECRET] * 30, "scores": True}
    reply = post(engine, asked)
    problem = body(reply)
    assert (reply.status, problem["type"]) == (413, "urn:coldframe:error:AnswerTooLarge")
    assert re.match(
        r"The answer would have \d+ bytes on its way out, expected at most 8192\. Leave out `scores`",
        problem["detail"],
    )
    assert SECRET not in reply.body.decode() + "".join(log_lines)
    assert post(engine, asked | {"scores": False}).status == 200


def test_unknown_route(api: Api, log_lines: list[str]) -> None:
    """An unknown path is a 404 that lists the routes, and is not written to the log."""
    reply = post(api, {}, path=f"/{SECRET}")
    assert reply.status == 404
    assert "POST /v1/predict" in body(reply)["detail"]
    assert SECRET not in reply.body.decode() + "".join(log_lines)


def test_wrong_method(api: Api) -> None:
    """A known path with another method is a 405 that names the right one."""
    reply = api.answer(Request("GET", "/v1/predict"))
    assert reply.status == 405
    assert body(reply)["detail"] == "This method is not allowed. Use POST."
    assert reply.headers["allow"] == "POST"


def test_a_defect_tells_nothing(log_lines: list[str]) -> None:
    """A bug of ours is a 500 without detail; the log has its type and place, never its message."""

    def read_head(name: str) -> Head:
        raise RuntimeError(SECRET)

    engine = Api(served(tiny_predictor(read_head=read_head)), Settings(), StartMark(), log_lines.append)
    reply = post(engine, {"text": SECRET})
    assert (reply.status, body(reply)["title"]) == (500, "Internal error")
    assert SECRET not in reply.body.decode() + "".join(log_lines)
    assert "RuntimeError at " in json.loads(log_lines[0])["error"]


def test_log_line(api: Api, log_lines: list[str]) -> None:
    """Each request writes one line with its id, route, status, counters and times, and no text."""
    post(api, {"text": SECRET})
    (line,) = map(json.loads, log_lines)
    assert (line["request_id"], line["path"], line["status"], line["start"]) == (
        "request-1",
        "/v1/predict",
        200,
        "cold",
    )
    assert line["usage"]["texts"] == 1
    assert set(line["stages_ms"]) == {"cache", "tokenize", "estimate", "encode", "heads"}
    assert SECRET not in log_lines[0]


def test_log_can_be_turned_off(log_lines: list[str]) -> None:
    """With log level off nothing is written."""
    engine = Api(served(tiny_predictor()), Settings(log_level="off"), StartMark(), log_lines.append)
    post(engine, {"text": "a"})
    assert log_lines == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3)
    ),
    max_leaves=8,
)
almost_requests = st.dictionaries(
    st.sampled_from(["text", "texts", "heads", "top_k", "scores", "cache", "other"]),
    json_values | st.lists(st.text(max_size=5), max_size=4) | st.sampled_from([["first"], 1, 20, True]),
)


@given(st.binary(max_size=60) | almost_requests | json_values)
def test_never_a_500(content: object) -> None:
    """Whatever is sent, the answer is a prediction or a problem that names the sender's mistake."""
    engine = Api(served(tiny_predictor()), Settings(log_level="off"), StartMark())
    reply = post(engine, content if isinstance(content, bytes) else json.dumps(content).encode())
    assert reply.status in {200, 400, 413, 422}
    json.loads(reply.body)


def test_answer_below_the_least_probability_abstains(api: Api) -> None:
    """It says no label and keeps its probabilities; one that reaches the bound is as it was."""
    (plain,) = body(post(api, {"text": "abc", "top_k": 3}))["predictions"]
    found = plain["heads"]["first"]
    asked = {"text": "abc", "top_k": 3, "min_probability": found["probability"]}
    assert body(post(api, asked))["predictions"] == [plain]
    (doubtful,) = body(post(api, {**asked, "min_probability": 1}))["predictions"]
    assert doubtful["heads"]["first"] == {**found, "label": None, "abstained": True}


def test_model_s_own_least_probability(log_lines: list[str]) -> None:
    """A request without a bound has the model's; a request's own bound wins, zero included."""
    predictor = tiny_predictor()
    predictor.min_probability["first"] = 1.0
    api = Api(served(predictor), Settings(), StartMark(), log_lines.append)
    (prediction,) = body(post(api, {"text": "abc", "heads": ["first", "second"]}))["predictions"]
    assert [answer["label"] is None for answer in prediction["heads"].values()] == [True, False]
    (asked,) = body(post(api, {"text": "abc", "min_probability": 0}))["predictions"]
    assert asked["heads"]["first"]["label"] in LABELS


@pytest.mark.parametrize("bound", [-0.1, 1.1, "0.5", True])
def test_least_probability_is_one(api: Api, bound: object) -> None:
    """Anything but a number from 0 to 1 is refused."""
    assert post(api, {"text": "abc", "min_probability": bound}).status == 422
