"""Several models behind one contract: each is asked by its name."""

import json
from typing import Any

import numpy as np
import pytest

from coldframe.api.access import ANYONE
from coldframe.api.api import Api, Reply, Request
from coldframe.api.openapi import openapi
from coldframe.config import Settings
from coldframe.errors import BundleCorrupt
from coldframe.pipeline.models import Models
from coldframe.timing import StartMark
from coldframe_training.embeddings.matrices import to_matrix
from tests.conftest import post, served, tiny_encoder_manifest, tiny_manifest, tiny_predictor

FIRST, SECOND = "topics", "queues"
OTHER = tiny_encoder_manifest("other")
SETTINGS = Settings(max_texts=100)
SECRET = "a text that nobody but its sender may read"


def body(reply: Reply) -> Any:
    """The JSON of a reply."""
    return json.loads(reply.body)


def get(api: Api, path: str) -> Reply:
    return api.answer(Request("GET", path))


@pytest.fixture
def two(log_lines: list[str]) -> Api:
    """Two models on one encoder."""
    models = served(tiny_predictor(name=FIRST), tiny_predictor(name=SECOND))
    return Api(models, SETTINGS, StartMark(), log_lines.append)


@pytest.fixture
def two_encoders() -> Api:
    """Two models, each on an encoder of its own."""
    models = served(tiny_predictor(name=FIRST), tiny_predictor(name=SECOND, encoder_manifest=OTHER))
    return Api(models, Settings(log_level="off"), StartMark())


@pytest.fixture
def one_broken() -> Api:
    """Two models, of which the second cannot be loaded."""
    first = tiny_predictor(name=FIRST)
    models = Models({FIRST: first, SECOND: BundleCorrupt("estimator.bin has 5 bytes.")})
    return Api(models, Settings(log_level="off"), StartMark())


@pytest.mark.parametrize(
    ("asked", "name"), [({}, FIRST), ({"model": FIRST}, FIRST), ({"model": SECOND}, SECOND)]
)
def test_request_names_its_model(two: Api, log_lines: list[str], asked: dict[str, str], name: str) -> None:
    """The model that a request names answers, with its version; the first is the default."""
    answer = body(post(two, {"text": "a", **asked}))
    expected = (name, tiny_manifest(name).version)
    assert (answer["model"], answer["version"]) == expected
    line = json.loads(log_lines[-1])
    assert (line["model"], line["version"]) == expected


def test_versions_differ() -> None:
    """The name of a model, and the version of its encoder, are parts of its own version."""
    built = [tiny_manifest(FIRST), tiny_manifest(SECOND), tiny_manifest(FIRST, OTHER)]
    assert len({manifest.version for manifest in built}) == 3


@pytest.mark.parametrize("name", ["third", "tiny", "topics-first", ""])
def test_unknown_model(two: Api, log_lines: list[str], name: str) -> None:
    """An unknown name is a 404 that lists the models; the log names no model then."""
    reply = post(two, {"text": "a", "model": name})
    assert (reply.status, body(reply)["detail"]) == (
        404,
        f"{json.dumps(name)} is not a model here. Send one of: topics, queues.",
    )
    line = json.loads(log_lines[-1])
    assert not {"model", "version"} & line.keys()


def test_text_as_model(two: Api, log_lines: list[str]) -> None:
    """What looks like a text is not repeated, neither in the answer nor in the log."""
    for path, asked in (("/v1/predict", {"text": "a"}), ("/v1/models/", None), ("/v2/models/", None)):
        name = SECRET.replace(" ", "%20")
        reply = get(two, path + name) if asked is None else post(two, asked | {"model": SECRET}, path=path)
        assert reply.status == 404
        assert body(reply)["detail"].startswith("What was sent is not a model here. Send one of: t")
        assert SECRET not in reply.body.decode() + "".join(log_lines)


@pytest.mark.parametrize("name", [None, 1, ["topics"]])
def test_model_that_is_no_name(two: Api, name: object) -> None:
    """A model is named by a string."""
    reply = post(two, {"text": "a", "model": name})
    assert reply.status == 422
    assert "`$.model`" in body(reply)["detail"]


def test_heads_are_those_of_the_model(two: Api) -> None:
    """Both models answer by each of their heads, and by the Open Inference Protocol."""
    for name in (FIRST, SECOND):
        asked = {"text": "abc", "model": name, "heads": ["first", "second"]}
        heads = body(post(two, asked))["predictions"][0]["heads"]
        assert set(heads) == {"first", "second"}
        tensor = {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["abc"]}
        inferred = body(post(two, {"inputs": [tensor]}, path=f"/v2/models/{name}-first/infer"))
        assert inferred["model_version"] == tiny_manifest(name).version
        found = {output["name"]: output["data"] for output in inferred["outputs"]}
        assert found["label"] == [heads["first"]["label"]]


def test_list(two: Api) -> None:
    """The list has the models, the default one marked, then the encoder once, then every head."""
    cards = body(get(two, "/v1/models"))["data"]
    assert [card["id"] for card in cards] == [
        FIRST,
        SECOND,
        "tiny",
        "topics-first",
        "topics-second",
        "queues-first",
        "queues-second",
    ]
    assert [card["id"] for card in cards if card.get("is_default")] == [FIRST]
    assert {card["encoder"] for card in cards if "encoder" in card} == {"tiny"}
    for card in cards:
        assert body(get(two, f"/v1/models/{card['id']}")) == card
    reply = get(two, "/v1/models/third")
    assert reply.status == 404
    assert body(reply)["detail"].endswith(f"Send one of: {', '.join(card['id'] for card in cards)}.")


def test_list_of_two_encoders(two_encoders: Api) -> None:
    """Each encoder has a card, with its version."""
    cards = {card["id"]: card for card in body(get(two_encoders, "/v1/models"))["data"]}
    assert (cards[FIRST]["encoder"], cards[SECOND]["encoder"]) == ("tiny", "other")
    assert cards["tiny"]["version"] == tiny_encoder_manifest().version
    assert cards["other"]["version"] == OTHER.version


def test_protocol_lists_all(two_encoders: Api) -> None:
    """The Open Inference Protocol knows both encoders and every head of both models."""
    names = ["tiny", "other"] + [
        f"{model}-{head}" for model in (FIRST, SECOND) for head in ("auto", "first", "second")
    ]
    for name in names:
        assert body(get(two_encoders, f"/v2/models/{name}"))["name"] == name
        assert body(get(two_encoders, f"/v2/models/{name}/ready")) == {"name": name, "ready": True}
    reply = get(two_encoders, "/v2/models/topics")
    assert reply.status == 404
    assert set(body(reply)["detail"].removesuffix(".").split("Send one of: ")[1].split(", ")) == set(names)
    assert body(get(two_encoders, "/v2/models/other"))["versions"] == [OTHER.version]
    assert get(two_encoders, f"/v2/models/tiny/versions/{OTHER.version}").status == 404


def test_embeddings_of_the_only_encoder(two: Api) -> None:
    """Where there is one encoder, every name stands for it."""
    for name in (None, "tiny", FIRST, SECOND, "text-embedding-3-small"):
        answer = body(post(two, {"input": "abc", "model": name}, path="/v1/embeddings"))
        assert answer["model"] == name or (name, answer["model"]) == (None, "tiny")
        assert np.array_equal(
            np.float32(answer["data"][0]["embedding"]), to_matrix(tiny_predictor().embed(["abc"]).vectors)[0]
        )


@pytest.mark.parametrize(
    ("name", "encoder"),
    [(None, "tiny"), ("tiny", "tiny"), (FIRST, "tiny"), ("other", "other"), (SECOND, "other")],
)
def test_embeddings_of_two_encoders(log_lines: list[str], name: str | None, encoder: str) -> None:
    """An encoder is asked by its name, or by that of a model on it; without a name it is the default's."""
    models = served(tiny_predictor(name=FIRST), tiny_predictor(name=SECOND, encoder_manifest=OTHER))
    api = Api(models, Settings(), StartMark(), log_lines.append)
    assert post(api, {"input": "abc", "model": name}, path="/v1/embeddings").status == 200
    assert json.loads(log_lines[-1])["version"] == tiny_encoder_manifest(encoder).version


def test_unknown_encoder_of_two(two_encoders: Api) -> None:
    """Where there are two encoders, an unknown name is a 404 that lists what can be asked for."""
    reply = post(two_encoders, {"input": "a", "model": "third"}, path="/v1/embeddings")
    assert reply.status == 404
    listed = body(reply)["detail"].removesuffix(".").split("Send one of: ")[1].split(", ")
    assert set(listed) == {"tiny", "other", FIRST, SECOND}


def test_health_names_every_version(two: Api) -> None:
    """Health names the version of each model, and that of the default one apart."""
    versions = {name: tiny_manifest(name).version for name in (FIRST, SECOND)}
    assert body(get(two, "/healthz")) == {"status": "ok", "version": versions[FIRST], "models": versions}


def test_broken_model_stays_alone(one_broken: Api) -> None:
    """A model that cannot be loaded is a 503 that says why, and readiness is; other models answer."""
    tensor = {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["abc"]}
    good: list[tuple[str, object]] = [
        ("/v1/predict", {"text": "a"}),
        ("/v1/predict", {"text": "a", "model": FIRST}),
        ("/v1/embeddings", {"input": "a"}),
        ("/v1/embeddings", {"input": "a", "model": "tiny"}),
        ("/v1/embeddings", {"input": "a", "model": FIRST}),
        ("/v2/models/topics-first/infer", {"inputs": [tensor]}),
        ("/v2/models/tiny/infer", {"inputs": [tensor]}),
    ]
    bad: list[tuple[str, object]] = [
        ("/v1/predict", {"text": "a", "model": SECOND}),
        ("/v1/embeddings", {"input": "a", "model": SECOND}),
        ("/v2/models/queues-first/infer", {"inputs": [tensor]}),
    ]
    for path, asked in good:
        assert post(one_broken, asked, path=path).status == 200, path
    for path, asked in bad:
        reply = post(one_broken, asked, path=path)
        assert (reply.status, body(reply)["detail"]) == (503, "estimator.bin has 5 bytes."), path
    for path, status in {
        "/healthz": 503,
        "/v2/health/ready": 503,
        "/v2/health/live": 200,
        "/v2/models/topics-first/ready": 200,
        "/v2/models/tiny/ready": 200,
        "/v2/models/queues-first/ready": 503,
    }.items():
        assert get(one_broken, path).status == status, path


def test_openapi_lists_all(two_encoders: Api) -> None:
    """The document names each model where one is asked for, and each encoder and head of the protocol."""
    document = openapi(two_encoders.models, SETTINGS, ANYONE)
    model = document["components"]["schemas"]["PredictRequest"]["properties"]["model"]
    assert (model["enum"], model["default"]) == ([FIRST, SECOND], FIRST)

    def named(method: str, path: str) -> set[str]:
        [parameter] = document["paths"][path][method]["parameters"]
        return set(parameter["schema"]["enum"])

    heads = {f"{name}-{head}" for name in (FIRST, SECOND) for head in ("first", "second")}
    autos, encoders = {f"{FIRST}-auto", f"{SECOND}-auto"}, {"tiny", "other"}
    assert named("post", "/v2/models/{model}/infer") == heads | autos | encoders
    assert named("get", "/v1/models/{model}") == heads | encoders | {FIRST, SECOND}
