"""Answers a batch of items from a child of a Distributed Map: rows in, an answer for each row out."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coldframe.api.api import Api, Request
from coldframe.capacity.limits import EXECUTION_DATA
from coldframe.contract import PREDICT

ITEMS, SETTINGS = "Items", "BatchInput"
_ASKED = (
    "model",
    "heads",
    "top_k",
    "scores",
    "cache",
    "min_probability",
)  # for the whole batch


def json_body(value: object) -> bytes:
    """An event, encoded as the body of a request, with no more bytes than its caller sent.

    JSON's escapes would take six bytes for a letter of two. A lone surrogate is kept, so that the API refuses
    it.
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")


class BatchRefused(Exception):
    """A batch that would be refused again. Not to be retried."""


class BatchFailed(Exception):
    """A batch that may succeed when it is sent again."""


def answer_batch(
    event: Mapping[str, Any], api: Api, request_id: str, time_left_s: Callable[[], float]
) -> dict[str, Any]:
    """`Results`: for each item, in order, its `id`, with `version` and `heads` as in `POST /v1/predict`.

    event: `Items` with `id` and `row`; `BatchInput` with `text`, the column to classify (a row may also be
    the text itself), fields of a request, `version`, the required version of the model, and `traceparent`.
    `heads` is null for a row without text; `version` is null if no row has a text and no version is required.
    Raises BatchRefused or BatchFailed. Lambda logs their messages, so these repeat nothing from the event but
    numbers.
    """
    settings = event.get(SETTINGS, {})
    texts = [_text_of(item, settings.get("text", "text")) for item in event[ITEMS]]
    with_text = [text for text in texts if text is not None]
    version, answers = _predicted(with_text, settings, api, request_id, time_left_s)
    heads = iter(answers)
    results = [
        {"id": item["id"], "version": version, "heads": None if text is None else next(heads)}
        for item, text in zip(event[ITEMS], texts, strict=True)
    ]
    _check_size(results)
    return {"Results": results}


def _check_size(results: Sequence[Mapping[str, Any]]) -> None:
    """Raises BatchRefused for results that no child of a Distributed Map can return."""
    size = len(json_body(results))
    if size > EXECUTION_DATA.value:
        fitting = max(1, len(results) * EXECUTION_DATA.value // size * 9 // 10)  # rows differ in length
        raise BatchRefused(
            f"The answers of {len(results)} rows take {size:,} bytes, and Step Functions takes"
            f" {EXECUTION_DATA.value:,}. Start the run with --batch {fitting}."
        )


def _text_of(item: Mapping[str, Any], column: str) -> str | None:
    row = item["row"]
    if isinstance(row, Mapping):
        if column not in row:
            raise BatchRefused(
                f"{_name_of(item)} has no column with the requested name."
                " Name the column with the texts (`text`)."
            )
        row = row[column]
    if row is not None and not isinstance(row, str):
        raise BatchRefused(
            f"{_name_of(item)} has a text of type {type(row).__name__}, expected a string. Send strings."
        )
    return row


def _name_of(item: Mapping[str, Any]) -> str:
    """Item by its number. An id of another type may hold what a caller wrote."""
    return f"Item {item['id']}" if isinstance(item["id"], int) else "An item"


def _without_names(detail: str) -> str:
    """A problem's detail without names from the request, which `coldframe.errors.echo` quotes."""
    return "What was sent".join(detail.split('"')[::2])


def _predicted(
    texts: Sequence[str],
    settings: Mapping[str, Any],
    api: Api,
    request_id: str,
    time_left_s: Callable[[], float],
) -> tuple[str | None, list[dict[str, Any]]]:
    """The model's version, and the heads' answers for each text."""
    expected: str | None = settings.get("version")
    if not texts:
        return expected, []
    body = {name: settings[name] for name in _ASKED if settings.get(name) is not None} | {
        "texts": list(texts)
    }
    trace = {name: str(settings[name]) for name in ("traceparent",) if name in settings}
    request = Request(
        *PREDICT, trace, json_body(body), request_id=request_id, time_left_s=time_left_s, has_ids=False
    )
    reply = api.answer(request)
    answer = json.loads(reply.body)
    if reply.status == 200:
        _check_version(answer["version"], expected)
        return answer["version"], [prediction["heads"] for prediction in answer["predictions"]]
    problem = f"{reply.status}: {_without_names(answer['detail'])}"
    if reply.status < 500:
        raise BatchRefused(problem)
    raise BatchFailed(problem)


def _check_version(version: str, expected: str | None) -> None:
    """Raises BatchRefused if the model differs from the run's first one."""
    if expected is not None and version != expected:
        raise BatchRefused(
            f"Found the model {version}, expected the run's first one: the function was deployed after the"
            " run was started. Start a new run, so that one version answers every row."
        )
