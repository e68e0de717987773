"""Clients of others, unchanged, against the emulated function and against the server that stays."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coldframe.pipeline.predictor import Predictor
from coldframe_training.embeddings.matrices import to_matrix
from tests.support.example import BASEBALL, SPACE
from tests.support.running import coldframe_up
from tests.support.server_process import serving

openai = pytest.importorskip("openai", reason="needs openai, which `make test` installs")
triton = pytest.importorskip(
    "tritonclient.http", reason="needs tritonclient[http], which `make test` installs on Linux"
)

TEXTS = ["The shuttle reached orbit", "He struck out nine batters", "Grüße aus dem All", ""]


@pytest.fixture(scope="module")
def emulated(bundle: Path) -> Iterator[str]:
    """`coldframe up` on a free port: the handler, by way of payload 2.0 events."""
    with coldframe_up("listening on") as (url,):
        yield url


@pytest.fixture(scope="module")
def server(bundle: Path) -> Iterator[str]:
    """The server that stays, as its container runs it."""
    with serving(bundle, COLDFRAME_LOG_LEVEL="off") as started:
        yield started.url


@pytest.fixture(params=["emulated", "server"])
def url(request: pytest.FixtureRequest) -> str:
    """Address of the emulator or of the server."""
    address: str = request.getfixturevalue(request.param)
    return address


@pytest.fixture
def inference(url: str) -> Iterator[Any]:
    """Triton's client."""
    client = triton.InferenceServerClient(
        url.removeprefix("http://"), connection_timeout=60, network_timeout=60
    )
    yield client
    client.close()


@pytest.fixture
def embedder(url: str) -> Iterator[Any]:
    """OpenAI's client."""
    with openai.OpenAI(base_url=f"{url}/v1", api_key="unused", timeout=60, max_retries=0) as client:
        yield client


def text_tensor(binary: bool = True) -> Any:
    tensor = triton.InferInput("text", [len(TEXTS)], "BYTES")
    return tensor.set_data_from_numpy(np.array(TEXTS, dtype=object), binary_data=binary)


def test_triton_health_and_metadata(inference: Any) -> None:
    """The client finds server and models live, ready and described."""
    assert inference.is_server_live()
    assert inference.is_server_ready()
    assert inference.is_model_ready("topics-mlp")
    assert not inference.is_model_ready("topics-no-such-head")
    assert "binary_tensor_data" in inference.get_server_metadata()["extensions"]
    metadata = inference.get_model_metadata("topics-rf")
    assert [tensor["name"] for tensor in metadata["outputs"]] == ["label", "probability", "scores"]
    assert inference.is_model_ready("topics-rf", metadata["versions"][0])


@pytest.mark.parametrize("head", ["auto", "logreg", "rf", "hgb", "mlp", "ensemble"])
def test_triton_texts_to_topics(inference: Any, predictor: Predictor, head: str) -> None:
    """As the client sends by default, binary both ways: labels and scores are the head's, to the bit."""
    expected = to_matrix(predictor.predict(TEXTS, [head]).answers[head])[:, :-1]
    result = inference.infer(f"topics-{head}", [text_tensor()])
    assert result.as_numpy("label")[:2].tolist() == [SPACE.encode(), BASEBALL.encode()]
    assert np.array_equal(result.as_numpy("scores"), expected)
    assert np.array_equal(result.as_numpy("probability"), expected.max(axis=1))


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("binary_input", [True, False])
@pytest.mark.parametrize("binary_output", [True, False])
def test_triton_forms(
    inference: Any, predictor: Predictor, compression: str | None, binary_input: bool, binary_output: bool
) -> None:
    """JSON or binary, each way, with gzip or without: the same embeddings, to the bit."""
    result = inference.infer(
        "minilm-l6-v2",
        [text_tensor(binary_input)],
        outputs=[triton.InferRequestedOutput("embedding", binary_data=binary_output)],
        model_version=predictor.encoder.version,
        request_id="17",
        request_compression_algorithm=compression,
    )
    assert np.array_equal(result.as_numpy("embedding"), to_matrix(predictor.embed(TEXTS).vectors))
    assert result.get_response()["id"] == "17"


def test_triton_embeddings_to_topics(inference: Any, predictor: Predictor) -> None:
    """A head alone on embeddings that came from the encoder says what it says of the texts."""
    rows = inference.infer("minilm-l6-v2", [text_tensor()]).as_numpy("embedding")
    tensor = triton.InferInput("embedding", list(rows.shape), "FP32").set_data_from_numpy(rows)
    scores = inference.infer("topics-logreg", [tensor]).as_numpy("scores")
    found = predictor.predict(TEXTS, ["logreg"]).answers["logreg"]
    assert np.array_equal(scores, to_matrix(found)[:, :-1])


@pytest.mark.parametrize("priority", [0, 1, 2, 7])
def test_triton_priority_and_timeout(inference: Any, predictor: Predictor, priority: int) -> None:
    """The client's own words for urgency, and half a minute in microseconds: the same scores, to the bit."""
    result = inference.infer("topics-mlp", [text_tensor()], priority=priority, timeout=30_000_000)
    expected = to_matrix(predictor.predict(TEXTS, ["mlp"]).answers["mlp"])[:, :-1]
    assert np.array_equal(result.as_numpy("scores"), expected)
    assert "schedule_policy" in inference.get_server_metadata()["extensions"]


def test_triton_timeout_that_is_too_short(inference: Any) -> None:
    """A microsecond for the encoder: 503, at once."""
    texts = np.array([f"Nobody has asked for this text {i} before" for i in range(64)], dtype=object)
    tensor = triton.InferInput("text", [64], "BYTES").set_data_from_numpy(texts)
    with pytest.raises(triton.InferenceServerException) as caught:
        inference.infer("minilm-l6-v2", [tensor], timeout=1)
    assert caught.value.status() == "503"


def test_triton_errors(inference: Any) -> None:
    """The client's exception says what was wrong."""
    tensor = triton.InferInput("text", [1], "INT32").set_data_from_numpy(np.array([1], dtype=np.int32))
    with pytest.raises(triton.InferenceServerException, match="has datatype INT32, expected BYTES") as caught:
        inference.infer("topics-mlp", [tensor])
    assert caught.value.status() == "422"


@pytest.mark.parametrize("chosen", [{}, {"encoding_format": "float"}, {"encoding_format": "base64"}])
def test_openai_embeddings(embedder: Any, predictor: Predictor, chosen: dict[str, str]) -> None:
    """As the client sends by default and otherwise: the encoder's embeddings, to the bit, and usage."""
    answer = embedder.embeddings.create(model="minilm-l6-v2", input=TEXTS, **chosen)
    rows = [
        np.frombuffer(base64.b64decode(item.embedding), dtype="<f4")
        if isinstance(item.embedding, str)
        else np.array(item.embedding, dtype=np.float32)
        for item in answer.data
    ]
    embedded = predictor.embed(TEXTS)
    assert np.array_equal(rows, to_matrix(embedded.vectors))
    assert [item.index for item in answer.data] == [0, 1, 2, 3]
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == embedded.prompt_tokens


def test_openai_models(embedder: Any) -> None:
    """The client lists the models and finds one by its name."""
    names = [model.id for model in embedder.models.list()]
    assert {"minilm-l6-v2", "topics-mlp"} < set(names)
    assert embedder.models.retrieve("minilm-l6-v2").dimension == 384
    with pytest.raises(openai.NotFoundError):
        embedder.models.retrieve("gpt")


def test_openai_errors(embedder: Any) -> None:
    """Token input is an error of the client's own kind, which holds the problem."""
    with pytest.raises(openai.UnprocessableEntityError) as caught:
        embedder.embeddings.create(model="minilm-l6-v2", input=[[1, 2, 3]])
    assert "token ids" in caught.value.response.json()["detail"]
