"""Direct invocations by Athena: user-defined functions, by the contract of its query federation SDK.

Columns are Arrow inside JSON, which needs pyarrow: an image has it only if it was built with it.
https://github.com/awslabs/aws-athena-query-federation, and athena-python-udf 0.2.2 on PyPI; read 2026-11-22
"""

import base64
import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from coldframe.api.api import Api, Request
from coldframe.errors import ColdframeError
from coldframe_functions.predict.answer_batch import json_body
from coldframe_functions.predict.answer_sql import function_of

_OK = 200
_CAPABILITIES = 23  # equal to the answer of the SDK's own handlers


class NotAnswered(ColdframeError):
    """A batch from Athena cannot be answered. Athena shows the message, which never contains a text."""


def answer_athena(
    event: Mapping[str, Any], api: Api, request_id: str, time_left_s: Callable[[], float]
) -> dict[str, Any]:
    """The answer to a ping or to a batch. Raises NotAnswered, which ends the query."""
    kind = event["@type"]
    if kind == "PingRequest":
        return {
            "@type": "PingResponse",
            "catalogName": event.get("catalogName", "event"),
            "queryId": event["queryId"],
            "sourceType": "coldframe",
            "capabilities": _CAPABILITIES,
        }
    if kind != "UserDefinedFunctionRequest":
        raise NotAnswered(
            "Found a request that is neither a ping nor a user-defined function's. Call one in a query."
        )
    return _answer_batch(event, api, request_id, time_left_s)


def _answer_batch(
    event: Mapping[str, Any], api: Api, request_id: str, time_left_s: Callable[[], float]
) -> dict[str, Any]:
    try:
        import pyarrow as pa
    except ModuleNotFoundError as exc:
        raise NotAnswered(
            "This image has no pyarrow, which Athena's contract needs. Build and deploy it with the parameter"
            " ImageExtra=pyarrow."
        ) from exc
    function = function_of(event["methodName"])
    if function is None:
        raise NotAnswered("Found an unknown function. Call topic, topic_score or is_topic.")
    schema = pa.ipc.read_schema(_buffer(pa, event["inputRecords"]["schema"]))
    batch = pa.ipc.read_record_batch(_buffer(pa, event["inputRecords"]["records"]), schema)
    rows = [list(row.values()) for row in batch.to_pylist()]
    # Redshift's route takes rows unchanged and returns an embedding as text: Athena has no other type for it.
    body = json_body({"arguments": rows, "request_id": event.get("queryId") or ""})
    path = f"/v1/sql/redshift/{function}"
    reply = api.answer(Request("POST", path, body=body, request_id=request_id, time_left_s=time_left_s))
    answer = json.loads(reply.body)
    if reply.status != _OK:
        raise NotAnswered(answer["detail"])
    schema = pa.ipc.read_schema(_buffer(pa, event["outputSchema"]["schema"]))
    results = pa.record_batch([pa.array(answer["results"], schema.field(0).type)], schema=schema)
    records = {
        "aId": str(uuid.uuid4()),
        "schema": event["outputSchema"]["schema"],
        "records": base64.b64encode(results.serialize()).decode(),
    }
    return {"@type": "UserDefinedFunctionResponse", "records": records, "methodName": event["methodName"]}


def _buffer(pa: Any, encoded: str) -> Any:
    return pa.BufferReader(base64.b64decode(encoded))
