"""Answers a batch of items, as a child of a Distributed Map sends it: rows in, an answer for each row out."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coldframe.api.api import Api, Request
from coldframe.api.contract import PREDICT

ITEMS, SETTINGS = "Items", "BatchInput"
_ASKED = (
    "model",
    "heads",
    "top_k",
    "scores",
    "cache",
    "min_probability",
)  # of a request, for the whole batch


class BatchRefused(Exception):
    """A batch that would be refused again. Not to be retried."""


class BatchFailed(Exception):
    """A batch that may be answered when it is sent again."""


def answer_batch(
    event: Mapping[str, Any], api: Api, request_id: str, time_left_s: Callable[[], float]
) -> dict[str, Any]:
    """`Results`: for each item, in order, its `id`, and `heads` as `POST /v1/predict` has them.

    event: `Items` with `id` and `row`, and `BatchInput` with `text`, the column of a row that is classified
    (a row may also be the text itself), and fields of a request. Of a row without text `heads` is null.
    Raises BatchRefused or BatchFailed, which tell nothing of the texts.
    """
    settings = event.get(SETTINGS, {})
    texts = [_text_of(item, settings.get("text", "text")) for item in event[ITEMS]]
    wanted = [text for text in texts if text is not None]
    heads = iter(_predicted(wanted, settings, api, request_id, time_left_s))
    results = [
        {"id": item["id"], "heads": None if text is None else next(heads)}
        for item, text in zip(event[ITEMS], texts, strict=True)
    ]
    return {"Results": results}


def _text_of(item: Mapping[str, Any], column: str) -> str | None:
    row = item["row"]
    if isinstance(row, Mapping):
        if column not in row:
            raise BatchRefused(
                f"Item {item['id']} has no column {column!r}; name the one with the texts (`text`)."
            )
        row = row[column]
    if row is not None and not isinstance(row, str):
        raise BatchRefused(
            f"The text of item {item['id']} is of type {type(row).__name__}, expected a string."
        )
    return row


def _predicted(
    texts: Sequence[str],
    settings: Mapping[str, Any],
    api: Api,
    request_id: str,
    time_left_s: Callable[[], float],
) -> list[dict[str, Any]]:
    """The heads' answers for each text."""
    if not texts:
        return []
    body = {name: settings[name] for name in _ASKED if settings.get(name) is not None} | {
        "texts": list(texts)
    }
    request = Request(
        *PREDICT, body=json.dumps(body).encode(), request_id=request_id, time_left_s=time_left_s
    )
    reply = api.answer(request)
    answer = json.loads(reply.body)
    if reply.status == 200:
        return [prediction["heads"] for prediction in answer["predictions"]]
    problem = f"{reply.status}: {answer['detail']}"
    if reply.status < 500:
        raise BatchRefused(problem)
    raise BatchFailed(problem)
