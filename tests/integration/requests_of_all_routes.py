"""One request for each kind of answer, and what of two answers to it has to be the same."""

import json
import time
from dataclasses import dataclass
from typing import Any

from coldframe_bench.targets.container import Container
from coldframe_local.emulator.gateway.arrival import Arrived
from coldframe_local.emulator.gateway.http import HttpRequest, HttpResponse
from coldframe_local.emulator.gateway.payload_v2 import event_from_request, response_from_result

TEXTS = [
    "The shuttle reached orbit",
    "Which cipher is safe? " * 200,  # several windows
    "Grüße aus dem All",
    "",
]
HEADS = ["auto", "logreg", "rf", "hgb", "mlp"]
BYTES = {"name": "text", "datatype": "BYTES", "shape": [len(TEXTS)], "data": TEXTS}


@dataclass(frozen=True)
class Asked:
    """A request, and the status that answers it."""

    method: str
    path: str
    body: Any = None
    status: int = 200

    @property
    def content(self) -> bytes:
        return b"" if self.body is None else json.dumps(self.body).encode()

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


REQUESTS = [
    Asked("POST", "/v1/predict", {"texts": TEXTS, "cache": False}),
    Asked(
        "POST", "/v1/predict", {"texts": TEXTS, "heads": HEADS, "top_k": 3, "scores": True, "cache": False}
    ),
    Asked("POST", "/v1/predict", {"texts": TEXTS, "heads": ["unknown"]}, 422),
    Asked("POST", "/v1/embeddings", {"input": TEXTS, "encoding_format": "base64"}),
    Asked("GET", "/v1/models"),
    Asked("POST", "/v2/models/topics-mlp/infer", {"inputs": [BYTES]}),
    Asked("POST", "/v2/models/minilm-l6-v2/infer", {"inputs": [BYTES]}),
    Asked("GET", "/v2/models/minilm-l6-v2"),
    Asked("GET", "/healthz"),
    Asked("GET", "/docs"),
    Asked("GET", "/openapi.json"),
    Asked("GET", "/nowhere", status=404),
]

_OF_THE_ENVIRONMENT = {"start", "created"}
"""Members of an answer that tell when and where it was given."""


def ask_container(container: Container, asked: Asked) -> HttpResponse:
    """Sends a request to a container, in the event that API Gateway makes of it."""
    request = HttpRequest(
        asked.method, asked.path, "", [(b"content-type", b"application/json")], asked.content, "127.0.0.1"
    )
    result = container.invoke(event_from_request(request, Arrived("request-1", time.time())))
    return response_from_result(json.dumps(result).encode())


def answer_of(body: bytes) -> Any:
    """What an answer says, whoever gives it: JSON without what belongs to the environment, or text."""
    try:
        return _without_environment(json.loads(body))
    except ValueError:
        return body.decode()


def _without_environment(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_environment(v) for name, v in value.items() if name not in _OF_THE_ENVIRONMENT}
    if isinstance(value, list):
        return [_without_environment(item) for item in value]
    return value
