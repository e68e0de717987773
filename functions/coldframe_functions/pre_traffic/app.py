"""The pre-traffic hook: pings a new version and verifies its answers, before it gets any request.

The first start of a new image takes far longer than later ones, while Lambda fetches and caches it. The hook
takes this start, so no caller waits for it.
"""

import json
import math
import operator
import os
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from coldframe.api.gateway_event import http_event
from coldframe.coldstart.pings import Invoke, invoker, ping_environments
from coldframe.log_lines import plain_line

GOLDEN = Path("/opt/golden.json")
ENCODER = "minilm-l6-v2"  # the encoder of these golden vectors
# A token is at least one character and two more mark the ends: such a text is one window, and its embedding
# equals the reference instead of a mean.
_LONGEST_CHARACTERS = 254


class NotVerified(Exception):
    """The new version must not get traffic; the text says why."""


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Verifies NEW_VERSION and tells CodeDeploy. Without a deployment, only the report is returned."""
    started_s = time.monotonic()
    lambda_client, codedeploy = _clients()
    environments = int(os.environ["WARM_ENVIRONMENTS"])
    try:
        report = verify(invoker(lambda_client, os.environ["NEW_VERSION"]), _read(GOLDEN), environments)
        status = "Succeeded"
    except Exception as exc:  # any error: without an answer CodeDeploy waits for an hour
        report = {"error": type(exc).__name__, "detail": str(exc)}
        status = "Failed"
    print(plain_line("pre-traffic", started_s, status=status, **report))
    if "DeploymentId" in event:
        codedeploy.put_lifecycle_event_hook_execution_status(
            deploymentId=event["DeploymentId"],
            lifecycleEventHookExecutionId=event["LifecycleEventHookExecutionId"],
            status=status,
        )
    return {"status": status, **report}


def verify(invoke: Invoke, golden: dict[str, Any], environments: int) -> dict[str, Any]:
    """Pings `environments` of the version behind `invoke` and checks its answers.

    Raises NotVerified, or the errors of `invoke`.
    """
    pinged = ping_environments(invoke, environments)
    if not pinged.environments:
        raise NotVerified("No environment answered a ping. Check whether reserved concurrency is used up.")
    _ask(invoke, "GET", "/healthz")
    listed = _ask(invoke, "GET", "/v1/models")["data"]
    checked = _check_embeddings(invoke, golden) if _serves_encoder(listed) else {"golden": 0}
    return {"models": _check_predictions(invoke, listed, golden), **checked, **pinged._asdict()}


def _serves_encoder(listed: Sequence[dict[str, Any]]) -> bool:
    """Whether the golden vectors belong to a served encoder. Others are compared at init only."""
    return any("dimension" in entry and entry["id"] == ENCODER for entry in listed)


def _check_embeddings(invoke: Invoke, golden: dict[str, Any]) -> dict[str, Any]:
    """The lowest cosine between embeddings over HTTP and the golden ones, and their number."""
    vectors = [v for v in golden["vectors"] if len(v["text"]) <= _LONGEST_CHARACTERS]
    answer = _ask(invoke, "POST", "/v1/embeddings", {"model": ENCODER, "input": [v["text"] for v in vectors]})
    rows = [entry["embedding"] for entry in answer["data"]]
    if len(rows) != len(vectors):
        raise NotVerified(f"{len(rows)} embeddings came back, expected {len(vectors)}.")
    lowest = min(_cosine(row, v["embedding"]) for row, v in zip(rows, vectors, strict=True))
    if not lowest >= golden["min_cosine"]:  # this form also fails for NaN
        raise NotVerified(
            f"An embedding has cosine {lowest:.4f} to the reference, expected {golden['min_cosine']} or more."
            " The image was built for another processor, or with another encoder: run `coldframe verify`."
        )
    return {"golden": len(rows), "lowest_cosine": round(lowest, 4)}


def _check_predictions(
    invoke: Invoke, listed: Sequence[dict[str, Any]], golden: dict[str, Any]
) -> dict[str, str]:
    """Checks that every head of every model answers with a probability for one of its labels. Returns
    versions.
    """
    models = [entry for entry in listed if "default_head" in entry]
    if not models:
        raise NotVerified("/v1/models lists no model. Build one into the image.")
    texts = [v["text"] for v in golden["vectors"][:4]]
    return {model["id"]: _check_model(invoke, model, texts) for model in models}


def _check_model(invoke: Invoke, model: dict[str, Any], texts: Sequence[str]) -> str:
    name, heads, labels = model["id"], ["auto", *model["heads"]], set(model["labels"])
    body = {"model": name, "texts": texts, "heads": heads, "cache": False, "min_probability": 0}
    answer = _ask(invoke, "POST", "/v1/predict", body)
    predictions = list(_predictions(answer))
    if len(predictions) != len(texts) * len(heads):
        problem = f"{len(predictions)} predictions of {name} came back"
        raise NotVerified(f"{problem}, expected {len(texts) * len(heads)}.")
    for head, prediction in predictions:
        if prediction["label"] not in labels or not 0 < prediction["probability"] <= 1:
            raise NotVerified(f'Head "{head}" of {name} answered with no probability of a known label.')
    return str(answer["version"])


def _predictions(answer: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for entry in answer["predictions"]:
        yield from entry["heads"].items()


def _ask(invoke: Invoke, method: str, path: str, body: object = None) -> dict[str, Any]:
    """The JSON that the version answers to a request, sent in API Gateway's form."""
    response = invoke(http_event(method, path, body))
    if response.get("statusCode") != 200:
        raise NotVerified(f"{method} {path} was answered with {response.get('statusCode')}, expected 200.")
    answer: dict[str, Any] = json.loads(response["body"])
    return answer


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return _dot(one, other) / math.sqrt(_dot(one, one) * _dot(other, other))


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return float(sum(map(operator.mul, one, other)))


def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content


@cache
def _clients() -> tuple[Any, Any]:
    import boto3
    from botocore.config import Config

    # Longer than the slowest measured first start; and a ping is never repeated.
    patient = Config(max_pool_connections=50, read_timeout=120, retries={"total_max_attempts": 1})
    return boto3.client("lambda", config=patient), boto3.client("codedeploy")
