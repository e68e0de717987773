"""The Open Inference Protocol, without a server and without a model."""

import gzip
import json
from typing import Any

import numpy as np
import pytest

from coldframe.api.api import Api, Reply, Request
from coldframe.config import Settings
from coldframe.timing import StartMark
from tests.conftest import LABELS, post, served, tiny_encoder_manifest, tiny_manifest, tiny_predictor

SECRET = "a text that nobody but its sender may read"
TOPICS = "/v2/models/topics-first/infer"
ENCODER = "/v2/models/tiny/infer"
VERSION = tiny_manifest().version


def get(api: Api, path: str) -> Any:
    reply = api.answer(Request("GET", path))
    assert reply.status == 200, reply.body
    return json.loads(reply.body)


def text_input(*texts: str) -> dict[str, Any]:
    return {"name": "text", "shape": [len(texts)], "datatype": "BYTES", "data": list(texts)}


def row_input(rows: Any) -> dict[str, Any]:
    return {"name": "embedding", "shape": [len(rows), 8], "datatype": "FP32", "data": rows}


def infer(api: Api, path: str, *inputs: dict[str, Any], **more: Any) -> dict[str, Any]:
    reply = post(api, {"inputs": inputs, **more}, path=path)
    assert reply.status == 200, reply.body
    answer: dict[str, Any] = json.loads(reply.body)
    return answer


def outputs(answer: dict[str, Any]) -> dict[str, Any]:
    return {output["name"]: output for output in answer["outputs"]}


def binary_request(api: Api, path: str, asked: dict[str, Any], content: bytes, **headers: str) -> Reply:
    """JSON, then tensors, as clients of the extension send it."""
    header = json.dumps(asked).encode()
    named = {"inference-header-content-length": str(len(header))} | headers
    return api.answer(Request("POST", path, named, header + content))


def test_server(api: Api) -> None:
    """The server says its name, that it lives, and that it is ready."""
    assert get(api, "/v2")["extensions"] == ["binary_tensor_data", "schedule_policy"]
    assert get(api, "/v2/health/live") == {"live": True}
    assert get(api, "/v2/health/ready") == {"ready": True}


@pytest.mark.parametrize("versions", [False, True])
def test_models(api: Api, versions: bool) -> None:
    """A model says its version, inputs, outputs and labels; with its version in the path, too."""
    suffix = f"/versions/{VERSION}" if versions else ""
    assert get(api, f"/v2/models/topics-second{suffix}/ready") == {"name": "topics-second", "ready": True}
    topics = get(api, f"/v2/models/topics-second{suffix}")
    assert topics["versions"] == [VERSION]
    assert {tensor["name"]: tensor["shape"] for tensor in topics["inputs"]} == {
        "text": [-1],
        "embedding": [-1, 8],
    }
    assert {tensor["name"]: tensor["shape"] for tensor in topics["outputs"]} == {
        "label": [-1],
        "probability": [-1],
        "scores": [-1, 3],
    }
    assert topics["parameters"]["labels"] == LABELS
    own = tiny_encoder_manifest().version
    encoder = get(api, "/v2/models/tiny" + (f"/versions/{own}" if versions else ""))
    assert encoder["versions"] == [own]
    assert [tensor["name"] for tensor in encoder["inputs"] + encoder["outputs"]] == ["text", "embedding"]


@pytest.mark.parametrize("path", ["", "/ready", "/infer"])
def test_unknown_models(api: Api, path: str) -> None:
    """An unknown model or version is a 404 that names what there is, also where clients look for it."""
    method = "POST" if path == "/infer" else "GET"
    for model, detail in {
        "topics-third": '"topics-third" is not a model here. Send one of: tiny, topics-auto,'
        " topics-first, topics-second.",
        "topics-first/versions/1": f"There is no such version of this model. Request version {VERSION}.",
    }.items():
        reply = api.answer(Request(method, f"/v2/models/{model}{path}"))
        problem = json.loads(reply.body)
        assert (reply.status, problem["detail"], problem["error"]) == (404, detail, detail)


def test_texts_to_topics(api: Api) -> None:
    """Each text gets label, probability and scores, those of the head by its own route."""
    texts = ["abc", "defgh", "abc"]
    answer = infer(api, TOPICS, text_input(*texts), id="42")
    assert (answer["model_name"], answer["model_version"], answer["id"]) == ("topics-first", VERSION, "42")
    found = outputs(answer)
    asked = {"texts": texts, "heads": ["first"], "scores": True}
    predictions = json.loads(post(api, asked).body)["predictions"]
    for row, prediction in enumerate(predictions):
        head = prediction["heads"]["first"]
        assert found["label"]["data"][row] == head["label"]
        assert np.float32(found["probability"]["data"][row]) == np.float32(head["probability"])
        assert np.array_equal(
            np.array(found["scores"]["data"], np.float32).reshape(3, 3)[row],
            np.array(list(head["scores"].values()), np.float32),
        )
    assert (found["label"]["datatype"], found["label"]["shape"]) == ("BYTES", [3])
    assert (found["scores"]["datatype"], found["scores"]["shape"]) == ("FP32", [3, 3])


def test_embeddings_to_topics(api: Api) -> None:
    """Texts to embeddings to topics gives, to the bit, what texts to topics gives."""
    texts = text_input("abc", "defgh")
    (embedding,) = infer(api, ENCODER, texts)["outputs"]
    assert (embedding["datatype"], embedding["shape"]) == ("FP32", [2, 8])
    rows = np.reshape(embedding["data"], (2, 8)).tolist()
    flat = {**row_input(rows), "data": embedding["data"]}
    assert (
        infer(api, TOPICS, texts)["outputs"]
        == infer(api, TOPICS, row_input(rows))["outputs"]
        == infer(api, TOPICS, flat)["outputs"]
    )


def test_outputs_are_selected(api: Api) -> None:
    """Only the outputs asked for are sent, in the order asked."""
    asked = [{"name": "probability"}, {"name": "label"}]
    answer = infer(api, TOPICS, text_input("a"), outputs=asked)
    assert list(outputs(answer)) == ["probability", "label"]


@pytest.mark.parametrize("compress", [False, True])
def test_binary_both_ways(api: Api, compress: bool) -> None:
    """Binary tensors give the same answer as JSON, each output in the form asked for; with gzip, too."""
    expected = outputs(infer(api, TOPICS, text_input("abc", "é")))
    content = b"\x03\0\0\0abc\x02\0\0\0\xc3\xa9"
    asked = {
        "inputs": [
            {
                "name": "text",
                "shape": [2],
                "datatype": "BYTES",
                "parameters": {"binary_data_size": len(content), "other": 1},
            }
        ],
        "outputs": [
            {"name": "scores"},
            {"name": "label"},
            {"name": "probability", "parameters": {"binary_data": False}},
        ],
        "parameters": {"binary_data_output": True, "priority": 3},
    }
    header = json.dumps(asked).encode()
    headers = {
        "inference-header-content-length": str(len(header)),
        "content-type": "application/octet-stream",
    }
    body = header + content
    if compress:
        headers["content-encoding"], body = "gzip", gzip.compress(body)
    reply = api.answer(Request("POST", TOPICS, headers, body))
    assert (reply.status, reply.headers["content-type"]) == (200, "application/octet-stream")
    length = int(reply.headers["inference-header-content-length"])
    answer, tail = outputs(json.loads(reply.body[:length])), reply.body[length:]
    assert answer["probability"] == expected["probability"]
    assert [answer[name]["parameters"]["binary_data_size"] for name in ("scores", "label")] == [
        24,
        len(tail) - 24,
    ]
    assert np.array_equal(np.frombuffer(tail[:24], "<f4"), np.float32(expected["scores"]["data"]))
    labels = b"".join(
        len(label).to_bytes(4, "little") + label.encode() for label in expected["label"]["data"]
    )
    assert tail[24:] == labels


BAD_REQUESTS: dict[str, tuple[str, dict[str, Any] | bytes, int, str]] = {
    "empty": (TOPICS, b"", 400, "The body is empty. Send JSON"),
    "no inputs": (TOPICS, {"inputs": []}, 422, "Expected `array` of length >= 1 - at `$.inputs`"),
    "no shape": (TOPICS, {"inputs": [{"name": "text", "datatype": "BYTES"}]}, 422, "Object missing required"),
    "negative shape": (
        TOPICS,
        {"inputs": [text_input(SECRET) | {"shape": [-1]}]},
        422,
        "Expected `int` >= 0 - at `$.inputs[0].shape[0]`",
    ),
    "unknown input": (
        TOPICS,
        {"inputs": [text_input(SECRET) | {"name": "texts"}]},
        422,
        '"texts" is not an input of this model. Send exactly one: text or embedding.',
    ),
    "both inputs": (
        TOPICS,
        {"inputs": [text_input(SECRET), row_input([[0.0] * 8])]},
        422,
        "Found 2 inputs. Send exactly one: text or embedding.",
    ),
    "embedding to the encoder": (
        ENCODER,
        {"inputs": [row_input([[0.0] * 8])]},
        422,
        '"embedding" is not an input of this model. Send exactly one: text.',
    ),
    "unknown output": (
        TOPICS,
        {"inputs": [text_input(SECRET)], "outputs": [{"name": "embedding"}]},
        422,
        '"embedding" is not an output of this model. Request one of: label, probability, scores.',
    ),
    "output twice": (
        ENCODER,
        {"inputs": [text_input(SECRET)], "outputs": [{"name": "embedding"}] * 2},
        422,
        'Output "embedding" is requested twice.',
    ),
    "classification": (
        TOPICS,
        {
            "inputs": [text_input(SECRET)],
            "outputs": [{"name": "scores", "parameters": {"classification": 3}}],
        },
        422,
        "`classification` of outputs is not supported.",
    ),
    "shared memory": (
        TOPICS,
        {"inputs": [text_input(SECRET) | {"parameters": {"shared_memory_region": "r"}}]},
        422,
        "Shared memory is not supported.",
    ),
    "too many texts": (TOPICS, {"inputs": [text_input(*[SECRET] * 101)]}, 413, 'Input "text" has 101 rows'),
    "too many rows": (TOPICS, {"inputs": [row_input([[0.0] * 8] * 101)]}, 413, 'Input "embedding" has 101'),
    "wide rows": (
        TOPICS,
        {"inputs": [row_input([[0.0] * 9]) | {"shape": [1, 9]}]},
        422,
        'Input "embedding" has shape [1, 9], expected [n, 8]',
    ),
    "too large to compute with": (
        TOPICS,
        {"inputs": [row_input([[0.5] * 8, [3e38] * 8])]},
        422,
        'Row 1 of input "embedding" is too large to compute with.',
    ),
}


@pytest.mark.parametrize("case", BAD_REQUESTS)
def test_bad_requests(api: Api, log_lines: list[str], case: str) -> None:
    """Bad input gets its status and what was expected, twice: for people and for clients."""
    path, content, status, detail = BAD_REQUESTS[case]
    reply = post(api, content, path=path)
    problem = json.loads(reply.body)
    assert (reply.status, reply.headers["content-type"]) == (status, "application/problem+json")
    assert problem["detail"].startswith(detail)
    assert problem["error"] == problem["detail"]
    assert SECRET not in reply.body.decode() + "".join(log_lines)


def test_bad_binary_requests(api: Api) -> None:
    """A binary body whose sizes do not add up is refused with what was found and expected."""
    asked = {"inputs": [text_input("a") | {"data": None, "parameters": {"binary_data_size": 9}}]}
    reply = binary_request(api, TOPICS, asked, b"\x01\0\0\0a")
    assert (reply.status, json.loads(reply.body)["detail"][:43]) == (
        422,
        "Found 5 bytes after the JSON part, expected",
    )
    reply = binary_request(api, TOPICS, asked, b"", **{"inference-header-content-length": "100000"})
    assert (reply.status, b"Inference-Header-Content-Length" in reply.body) == (400, True)


def test_too_large_an_answer() -> None:
    """An answer over the limit is refused by what to ask for instead, which then is answered."""
    settings = Settings(max_answer_bytes=2048 + 6000, log_level="off")
    api = Api(served(tiny_predictor()), settings, StartMark())
    asked: dict[str, Any] = {"inputs": [text_input(*map(str, range(100)))]}
    reply = post(api, asked, path=ENCODER)
    problem = json.loads(reply.body)
    assert (reply.status, problem["type"]) == (413, "urn:coldframe:error:AnswerTooLarge")
    assert "binary outputs" in problem["detail"]
    asked["parameters"] = {"binary_data_output": True}
    assert post(api, asked, path=ENCODER).status == 200


def test_log_line(api: Api, log_lines: list[str]) -> None:
    """The log has the model, and the pattern of the path: what else a path names is the caller's."""
    post(api, {"inputs": [text_input(SECRET)]}, path=TOPICS)
    post(api, {"inputs": [text_input(SECRET)]}, path=f"/v2/models/{SECRET}/infer")
    served, refused = map(json.loads, log_lines)
    assert (served["path"], served["model"]) == ("/v2/models/{model}/infer", "topics-first")
    assert served["usage"]["texts"] == 1
    assert refused["path"] == "/v2/models/{model}/infer"
    assert SECRET not in "".join(log_lines)


def test_label_below_the_least_probability_is_empty(api: Api) -> None:
    """A tensor has no null: the label is an empty string, and the other outputs are as they were."""
    path = "/v2/models/topics-first/infer"
    plain = outputs(infer(api, path, text_input("abc", "de")))
    doubtful = outputs(infer(api, path, text_input("abc", "de"), parameters={"min_probability": 1}))
    assert doubtful == {**plain, "label": {**plain["label"], "data": ["", ""]}}
    assert "" not in plain["label"]["data"]
