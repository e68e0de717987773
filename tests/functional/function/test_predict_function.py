"""The predict function: AWS events through the real handler and the real model."""

import asyncio
import base64
import copy
import gzip
import importlib
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.support.example import SPACE

CONTEXT = SimpleNamespace(aws_request_id="request-1", get_remaining_time_in_millis=lambda: 29_000)
Answer = Callable[[dict[str, Any]], dict[str, Any]]


def event_of(name: str) -> dict[str, Any]:
    """A recorded AWS event."""
    event: dict[str, Any] = json.loads((ROOT / "tests" / "events" / f"{name}.json").read_text())
    return event


HTTP, REST = event_of("http_api_predict"), event_of("rest_api_predict")


def to(event: dict[str, Any], method: str, path: str) -> dict[str, Any]:
    """The same event for another route, without a body."""
    other = copy.deepcopy(event) | {"body": None}
    if "http" in other["requestContext"]:
        other["requestContext"]["http"] |= {"method": method, "path": path}
        return other | {"rawPath": path}
    return other | {"httpMethod": method, "path": path}


@pytest.fixture
def app(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The function's module, through its init phase once more.

    Mangum runs on the thread's event loop, and would make one that nobody closes.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    monkeypatch.setenv("COLDFRAME_MODEL_DIR", str(bundle))
    monkeypatch.delitem(sys.modules, "coldframe_functions.predict.app", raising=False)
    module = importlib.import_module("coldframe_functions.predict.app")
    yield module
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.parametrize("event", [HTTP, REST], ids=["HTTP API", "REST API"])
def test_prediction(app: ModuleType, event: dict[str, Any]) -> None:
    """Both kinds of API Gateway event get the prediction, cold and then warm."""
    first, second = (app.handler(event, CONTEXT) for _ in range(2))
    assert first["statusCode"] == 200
    assert first["headers"]["content-type"] == "application/json"
    answer = json.loads(first["body"])
    (head,) = answer["predictions"][0]["heads"].values()
    assert head["label"] == SPACE
    assert 0.5 < head["probability"] <= 1
    assert (answer["start"], json.loads(second["body"])["start"]) == ("cold", "warm")


def test_base64_body(app: ModuleType) -> None:
    """A body that API Gateway encoded is decoded."""
    encoded = base64.b64encode(HTTP["body"].encode()).decode()
    response = app.handler(HTTP | {"body": encoded, "isBase64Encoded": True}, CONTEXT)
    assert response["statusCode"] == 200


def test_named_stage(app: ModuleType) -> None:
    """The stage that an HTTP API puts before the path is not part of the route."""
    event = copy.deepcopy(HTTP) | {"rawPath": "/prod/v1/predict"}
    event["requestContext"]["stage"] = "prod"
    assert app.handler(event, CONTEXT)["statusCode"] == 200


def sent(event: dict[str, Any], path: str, body: bytes, **headers: str) -> dict[str, Any]:
    """The same event for another route, with a body that API Gateway encoded."""
    encoded = {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return to(event, "POST", path) | encoded | {"headers": event["headers"] | named}


INFER = "/v2/models/topics-logreg/infer"
TENSORS = (
    b'{"inputs":[{"name":"text","shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":29}}],'
    b'"parameters":{"binary_data_output":true}}'
)


@pytest.mark.parametrize("event", [HTTP, REST], ids=["HTTP API", "REST API"])
@pytest.mark.parametrize("road", ["direct", "FastAPI"])
@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_binary_tensors(app: ModuleType, event: dict[str, Any], road: str, encoding: str) -> None:
    """Binary tensors survive both kinds of event, in and out, through either road, with gzip too."""
    body = TENSORS + b"\x19\0\0\0The shuttle reached orbit"
    asked = sent(
        event,
        INFER,
        gzip.compress(body) if encoding else body,
        content_type="application/octet-stream",
        content_encoding=encoding,
        inference_header_content_length=str(len(TENSORS)),
    )
    answer = (app.handler if road == "direct" else app._engine.fastapi)(asked, CONTEXT)
    assert (answer["statusCode"], answer["isBase64Encoded"]) == (200, True)
    headers = answer["headers"] | {
        name: values[0] for name, values in (answer.get("multiValueHeaders") or {}).items()
    }
    assert headers["content-type"] == "application/octet-stream"
    content = base64.b64decode(answer["body"])
    length = int(headers["inference-header-content-length"])
    outputs = json.loads(content[:length])["outputs"]
    assert [output["name"] for output in outputs] == ["label", "probability", "scores"]
    assert content[length:].startswith(len(SPACE).to_bytes(4, "little") + SPACE.encode())
    assert len(content) == length + sum(output["parameters"]["binary_data_size"] for output in outputs)


@pytest.mark.parametrize("event", [HTTP, REST], ids=["HTTP API", "REST API"])
@pytest.mark.parametrize("host", ["[::1]:3000", "a:b", "a:", "::", ""])
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/docs", 200),
        ("GET", "/openapi.json", 200),
        ("GET", "/nowhere", 404),
        ("DELETE", "/v1/predict", 405),
    ],
)
def test_any_host(
    app: ModuleType, event: dict[str, Any], host: str, method: str, path: str, status: int
) -> None:
    """Whatever Host a client sends, and whatever port a proxy names, routes beside the hot ones answer."""
    asked = to(event, method, path)
    asked["headers"] = asked["headers"] | {"Host": host, "X-Forwarded-Port": "a"}
    if "multiValueHeaders" in asked:
        asked["multiValueHeaders"] |= {"Host": [host], "X-Forwarded-Port": ["a"]}
    assert app.handler(asked, CONTEXT)["statusCode"] == status


@pytest.mark.parametrize("event", [HTTP, REST], ids=["HTTP API", "REST API"])
def test_bomb(app: ModuleType, event: dict[str, Any]) -> None:
    """A gzip body that would fill the memory is refused as too large."""
    answer = app.handler(
        sent(event, "/v1/predict", gzip.compress(b" " * 50_000_000), content_encoding="gzip"), CONTEXT
    )
    assert (answer["statusCode"], answer["isBase64Encoded"]) == (413, False)
    assert "more than 16777216 bytes when decompressed" in json.loads(answer["body"])["detail"]


def test_largest_answer_fits_lambda(app: ModuleType) -> None:
    """As many embeddings as one request may ask for, as numbers: the runtime client can carry them."""
    body = json.dumps({"input": [str(number) for number in range(1024)]}).encode()
    answer = app.handler(sent(HTTP, "/v1/embeddings", body), CONTEXT)
    assert answer["statusCode"] == 200
    assert len(json.dumps(answer)) <= 6_291_456


@pytest.mark.parametrize("event", [HTTP, REST], ids=["HTTP API", "REST API"])
def test_encoded_path(app: ModuleType, event: dict[str, Any]) -> None:
    """A path may be percent-encoded, whichever road it takes."""
    asked = to(event, "GET", "/v2/models/topics%2Dmlp/ready")
    answers = [road(asked, CONTEXT) for road in (app.handler, app._engine.fastapi)]
    assert [(answer["statusCode"], json.loads(answer["body"])) for answer in answers] == [
        (200, {"name": "topics-mlp", "ready": True})
    ] * 2


@pytest.mark.parametrize("event", [HTTP, REST], ids=["HTTP API", "REST API"])
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/healthz", 200),
        ("GET", "/v1/models", 200),
        ("GET", "/v1/models/minilm-l6-v2", 200),
        ("GET", "/v1/models/nothing", 404),
        ("GET", "/v2", 200),
        ("GET", "/v2/health/live", 200),
        ("GET", "/v2/health/ready", 200),
        ("GET", "/v2/models/topics-rf", 200),
        ("GET", "/v2/models/topics-rf/ready", 200),
        ("GET", "/v2/models/topics-rf/versions/1/ready", 404),
        ("POST", "/v2/models/topics-rf/infer", 400),
        ("POST", "/v1/embeddings", 400),
        ("GET", "/v1/predict", 405),
        ("GET", "/nowhere", 404),
    ],
)
def test_other_routes(app: ModuleType, event: dict[str, Any], method: str, path: str, status: int) -> None:
    """Every other route answers through either road, errors as problem+json."""
    response = app.handler(to(event, method, path), CONTEXT)
    assert response["statusCode"] == status
    if status >= 400:
        assert response["headers"]["content-type"] == "application/problem+json"
        assert json.loads(response["body"])["status"] == status


def test_documentation(app: ModuleType) -> None:
    """The OpenAPI document names the routes, and /docs shows it."""
    document = json.loads(app.handler(to(HTTP, "GET", "/openapi.json"), CONTEXT)["body"])
    answered = {path for _, path in app._engine.api.routes}
    # Jobs and feedback are documented where they are set up.
    optional = ("/v1/jobs", "/v1/feedback")
    assert set(document["paths"]) == {path for path in answered if not path.startswith(optional)}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert (method.upper(), path) in app._engine.api.routes
            errors = {"400", "404", "405", "413", "415", "422"} if method == "post" else {"404", "405"}
            gateway = {"401", "403", "429", "500", "503"}
            assert set(operation["responses"]) == {"200"} | errors | gateway
            named = [item["name"] for item in operation.get("parameters", []) if item["in"] == "path"]
            assert named == re.findall(r"{(\w+)}", path)
    page = app.handler(to(HTTP, "GET", "/docs"), CONTEXT)
    assert (page["statusCode"], "swagger" in page["body"]) == (200, True)


def test_documentation_needs_no_other_host(app: ModuleType) -> None:
    """The page at /docs loads its script and style from this function, not from elsewhere."""
    page = app.handler(to(HTTP, "GET", "/docs"), CONTEXT)["body"]
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(loaded) >= 2
    for path in loaded:
        assert path.startswith("/static")
        assert app.handler(to(HTTP, "GET", path), CONTEXT)["statusCode"] == 200


def test_fastapi_gives_the_same_answer(app: ModuleType) -> None:
    """The documented face and the hot path answer alike, good and bad requests."""
    fastapi = app._engine.fastapi
    for body in (HTTP["body"], "", "{", '{"texts": []}', '{"text": 1}', '{"text": "a", "heads": ["none"]}'):
        event = HTTP | {"body": body}
        hot, documented = app.handler(event, CONTEXT), fastapi(event, CONTEXT)
        assert documented["statusCode"] == hot["statusCode"]
        assert documented["headers"]["content-type"] == hot["headers"]["content-type"]
        assert without_counts(documented["body"]) == without_counts(hot["body"])


def test_fastapi_gives_the_same_answer_on_every_route(app: ModuleType) -> None:
    """Whatever the route, whatever the body, both roads answer alike."""
    fastapi = app._engine.fastapi
    bodies = [b"", b"[]", b'{"input": "a"}', b'{"input": [1]}', TENSORS, b"\xff"]
    bodies.append(b'{"inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": ["a"]}]}')
    for method, pattern in app._engine.api.routes:
        path = pattern.replace("{model}", "minilm-l6-v2").replace("{version}", "1")
        for body in bodies:
            event = sent(HTTP, path, body)
            event["requestContext"]["http"]["method"] = method
            hot, documented = app.handler(event, CONTEXT), fastapi(event, CONTEXT)
            assert documented["statusCode"] == hot["statusCode"] != 500
            assert documented["headers"]["content-type"] == hot["headers"]["content-type"]
            assert without_counts(documented["body"]) == without_counts(hot["body"])


def without_counts(body: str) -> dict[str, Any]:
    """An answer without what differs from one request to the next."""
    answer: dict[str, Any] = json.loads(body)
    answer.pop("usage", None)
    answer.pop("start", None)
    return answer


def test_other_events(app: ModuleType) -> None:
    """An event of another source fails with what was expected."""
    with pytest.raises(ValueError, match="does not come from API Gateway"):
        app.handler({"Records": []}, CONTEXT)


def test_init_fails_without_a_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a model, or without the one it is to serve, the init phase fails and says what to do."""
    monkeypatch.setenv("COLDFRAME_MODEL_DIR", str(tmp_path))
    monkeypatch.delitem(sys.modules, "coldframe_functions.predict.app", raising=False)
    with pytest.raises(Exception, match=r"has no model\. Run `coldframe build`"):
        importlib.import_module("coldframe_functions.predict.app")
    monkeypatch.setenv("COLDFRAME_MODELS", "topics")
    monkeypatch.delitem(sys.modules, "coldframe_functions.predict.app", raising=False)
    with pytest.raises(Exception, match=r"has no model\. Run `coldframe build`"):
        importlib.import_module("coldframe_functions.predict.app")


FORBIDDEN = {
    "sklearn",
    "scipy",
    "fastapi",
    "starlette",
    "pydantic",
    "mangum",
    "boto3",
    "botocore",
    "torch",
} | {
    "transformers",
    "optimum",
    "asyncio",
    "dataclasses",
    "urllib.request",
    "http.client",
}


def imported_for(bundle: Path, asked: dict[str, object]) -> set[str]:
    """Modules that a fresh process has imported when it has given its first answer."""
    event = {**HTTP, "body": json.dumps(asked), "isBase64Encoded": False}
    code = (
        "import json, sys\n"
        "from types import SimpleNamespace\n"
        "from coldframe_functions.predict.app import handler\n"
        "context = SimpleNamespace(aws_request_id='1', get_remaining_time_in_millis=lambda: 29_000)\n"
        f"response = handler(json.loads({json.dumps(event)!r}), context)\n"
        "sys.stderr.write(json.dumps(sorted(sys.modules)))\n"
        "assert response['statusCode'] == 200, response\n"
    )
    environ = {"COLDFRAME_MODEL_DIR": str(bundle), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr))


@pytest.mark.parametrize("text", ["What a nice day", "NASA launched the shuttle into orbit around the moon"])
def test_imports_of_a_first_answer(bundle: Path, text: str) -> None:
    """A prediction in a fresh process imports no framework, SDK, tokenizers, numpy or binding."""
    imported = imported_for(bundle, {"text": text})
    assert not FORBIDDEN & imported
    assert (
        not {"coldframe.api.inference_protocol", "coldframe.api.openai", "coldframe.api.compression"}
        & imported
    )
    assert not {"tokenizers", "zipfile", "numpy", "onnxruntime", "inspect", "typing_extensions"} & imported
    assert {"msgspec", "ctypes"} <= imported


def test_runtime_environment_is_lean() -> None:
    """The runtime's lock has no training library, and neither has this environment."""
    lock = (ROOT / "functions" / "requirements.txt").read_text()
    pinned = {line.split("==")[0] for line in lock.splitlines() if "==" in line}
    assert not pinned & {"torch", "transformers", "optimum", "scikit-learn", "huggingface-hub"}
    for name in ("torch", "transformers", "optimum"):
        assert importlib.util.find_spec(name) is None
