"""Requests of every route with a marked text in each place where a caller can put one."""

import gzip
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from coldframe.contract import SQL_PATHS

SECRET = "zyxwv4711secret"
TEXT = f"The goalie made forty saves {SECRET}"
_BYTES = {"name": "text", "datatype": "BYTES", "shape": [1]}
_JSON = "application/json"


class SecretRequest(NamedTuple):
    """A request. pattern: of its route. status: that answers it; 0: of no interest."""

    pattern: str
    method: str
    path: str
    headers: dict[str, str]
    content: bytes
    status: int = 0


def secret_requests() -> Iterator[SecretRequest]:
    """Good requests, and wrong ones that carry the text in a name, a header, a path or a broken body."""
    yield from _of_predictions()
    yield from _of_tensors()
    for path in SQL_PATHS:
        of_path = [TEXT, "rec.sport.hockey"] if path.endswith(("is_topic", "topic_score")) else [TEXT]
        body = _sql_body(path, of_path)
        yield _post(path, body, 200)
        yield _post(path, {**body, "head": SECRET} if isinstance(body, dict) else SECRET)
    yield _post("/v1/feedback", {"feedback": [{"id": SECRET, "label": SECRET}]})
    yield SecretRequest("/v1/feedback/{id}", "DELETE", f"/v1/feedback/{SECRET}", {}, b"")
    for pattern in ("/v1/models/{model}", "/v2/models/{model}", "/v2/models/{model}/ready", "/v1/jobs/{job}"):
        yield SecretRequest(pattern, "GET", pattern.replace(pattern.split("/")[3], SECRET), {}, b"")
    for path in (f"/{SECRET}", f"/healthz?q={SECRET}", f"/v1/jobs/{SECRET}/answers/0", f"/docs/{SECRET}"):
        yield SecretRequest("other", "GET", path, {}, b"")
    yield SecretRequest(
        "/healthz", "GET", "/healthz", {"traceparent": SECRET, "x-amzn-trace-id": SECRET}, b""
    )


def _of_predictions() -> Iterator[SecretRequest]:
    yield _post("/v1/predict", {"text": TEXT, "heads": ["auto", "logreg"], "scores": True}, 200)
    yield _post("/v1/predict", {"texts": [TEXT] * 3, "cache": True}, 200)
    yield _post("/v1/predict", {"text": TEXT, "explain": True}, 200)
    zipped = gzip.compress(json.dumps({"text": TEXT, "cache": False}).encode())
    yield _post("/v1/predict", zipped, 200, {"content-encoding": "gzip"})
    for wrong in (
        {"text": TEXT, "heads": [SECRET]},
        {"text": TEXT, "model": SECRET},
        {"text": TEXT, SECRET: 1},
        {"text": TEXT, "top_k": SECRET},
        [TEXT],
        f'{{"text": "{TEXT}'.encode(),
        f'{{"text": "\\ud800{TEXT}"}}'.encode(),
    ):
        yield _post("/v1/predict", wrong)
    for headers in (
        {"x-request-id": f"{SECRET} with a space"},
        {"x-request-id": "r" * 200 + SECRET},
        {"traceparent": f"00-{SECRET}-00f067aa0ba902b7-01"},
        {"traceparent": f"00-{SECRET * 300}"},
        {"x-amzn-trace-id": f"Root=1-{SECRET};Self={SECRET}"},
        {"tracestate": f"{SECRET}=1", "baggage": f"{SECRET}=1", "user-agent": SECRET, "cookie": SECRET},
        {"content-encoding": SECRET},
        {"content-type": f"text/{SECRET}"},
    ):
        yield _post("/v1/predict", {"text": TEXT, "cache": False}, 0, headers)
    yield _post("/v1/embeddings", {"input": [TEXT]}, 200)
    yield _post("/v1/embeddings", {"input": TEXT, "encoding_format": "base64", "user": SECRET}, 200)
    yield _post("/v1/embeddings", {"input": TEXT, "model": SECRET, "dimensions": SECRET})


def _of_tensors() -> Iterator[SecretRequest]:
    for model in ("topics-logreg", "minilm-l6-v2"):
        path, pattern = f"/v2/models/{model}/infer", "/v2/models/{model}/infer"
        inputs = {"inputs": [{**_BYTES, "data": [TEXT]}]}
        yield _post(path, inputs, 200, pattern=pattern)
        yield _post(path, inputs | {"id": SECRET, "parameters": {SECRET: SECRET}}, pattern=pattern)
        tensor = len(TEXT).to_bytes(4, "little") + TEXT.encode()
        head = json.dumps({"inputs": [{**_BYTES, "parameters": {"binary_data_size": len(tensor)}}]}).encode()
        headers = {
            "content-type": "application/octet-stream",
            "inference-header-content-length": str(len(head)),
        }
        yield _post(path, head + tensor, 200, headers, pattern)
        yield _post(path, head + tensor[:-3], 0, headers, pattern)
        yield _post(path, {"inputs": [{**_BYTES, "name": SECRET, "data": [TEXT]}]}, pattern=pattern)
    yield _post(f"/v2/models/{SECRET}/infer", {}, pattern="/v2/models/{model}/infer")


def _sql_body(path: str, values: list[str]) -> dict[str, Any]:
    if "snowflake" in path:
        return {"data": [[0, *values]]}
    if "bigquery" in path:
        return {"calls": [values]}
    return {"arguments": [values]}


def _post(
    path: str, body: Any, status: int = 0, headers: dict[str, str] | None = None, pattern: str = ""
) -> SecretRequest:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return SecretRequest(
        pattern or path, "POST", path, {"content-type": _JSON} | (headers or {}), content, status
    )
