"""Priming: an environment that is initialised ahead of traffic runs every kind of request once.

A route belongs here when it imports or loads something that the others do not. Pings are different: they
keep existing environments warm (`coldframe.coldstart.pings`).
"""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from types import SimpleNamespace
from typing import Any

from coldframe.api.gateway_event import http_event

Handler = Callable[[Mapping[str, Any], Any], Mapping[str, Any]]

# A word of one token. Rows of equal length share a shape, for which onnxruntime plans its memory.
_WORD = "the"
_WORDS = (1, 2, 4, 8, 16, 32, 64, 128, 254, 1016)
_SHORT = [f"{_WORD} {letter}" for letter in "abcdefgh"]
_PAGES = ("/openapi.json", "/docs")
_TEXT = {"name": "text", "datatype": "BYTES", "shape": [1], "data": [_WORD]}


def prime(handler: Handler) -> None:
    """Answers requests of every kind, which imports modules, reads heads, and plans and touches memory.

    Nothing is logged. Raises RuntimeError when a request fails: an environment that cannot
    answer these must not get traffic.
    """
    with redirect_stdout(io.StringIO()):
        models = [card for card in _ask(handler, "GET", "/v1/models", None)["data"] if "default_head" in card]
        for model in models:
            for method, path, body in _requests(model["id"], list(model["heads"])):
                _ask(handler, method, path, body)
        for page in _PAGES:
            _ask(handler, "GET", page, None)


def _requests(name: str, heads: list[str]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    fields = {"model": name, "heads": ["auto", *heads], "cache": False}
    for words in _WORDS:
        yield "POST", "/v1/predict", {"text": " ".join([_WORD] * words), **fields}
    yield "POST", "/v1/predict", {"texts": _SHORT, **fields}
    yield "POST", "/v1/embeddings", {"model": name, "input": _WORD}
    yield "POST", f"/v2/models/{name}-{heads[0]}/infer", {"inputs": [_TEXT]}


def _ask(handler: Handler, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
    """The JSON of an answer, or None for a page."""
    context = SimpleNamespace(aws_request_id="priming", get_remaining_time_in_millis=lambda: 60_000)
    reply = handler(http_event(method, path, body), context)
    if reply["statusCode"] != 200:
        raise RuntimeError(
            f"{method} {path} was answered with {reply['statusCode']} ahead of traffic, not with 200."
        )
    is_json = reply["headers"]["content-type"].startswith("application/json")
    return json.loads(reply["body"]) if is_json else None
