"""Athena's user-defined functions: Arrow inside JSON, both ways."""

import base64
import math
import sys
from typing import Any

import pyarrow as pa
import pytest

from coldframe_functions.predict.answer_athena import NotAnswered, answer_athena
from tests.unit.coldframe.sql.test_engines import api_of

SECRET = "a private letter"


def encoded(part: Any) -> str:
    return base64.b64encode(part.serialize()).decode()


def request(method: str, columns: dict[str, list[str | None]], kind: pa.DataType) -> dict[str, Any]:
    """A batch as Athena sends it."""
    batch = pa.record_batch({name: pa.array(values, pa.string()) for name, values in columns.items()})
    output = pa.schema([("0", kind)])
    return {
        "@type": "UserDefinedFunctionRequest",
        "identity": {"id": "UNKNOWN", "principal": "UNKNOWN", "account": "123456789012"},
        "inputRecords": {
            "aId": "6b1e6cbb-4dbd-4c5e-a4a8-4a1f6d5b3d3a",
            "schema": encoded(batch.schema),
            "records": encoded(batch),
        },
        "outputSchema": {"schema": encoded(output)},
        "methodName": method,
        "functionType": "SCALAR",
    }


def ask(event: dict[str, Any]) -> list[Any]:
    """The values that Athena reads."""
    answer = answer_athena(event, api_of(), "request-1", lambda: math.inf)
    assert (answer["@type"], answer["methodName"]) == ("UserDefinedFunctionResponse", event["methodName"])
    schema = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(answer["records"]["schema"])))
    batch = pa.ipc.read_record_batch(pa.BufferReader(base64.b64decode(answer["records"]["records"])), schema)
    return batch.column(0).to_pylist()  # type: ignore[no-any-return]


def test_functions() -> None:
    """Labels, probabilities and truth values come in their types, null for null, in order."""
    assert ask(request("topic", {"0": ["ab", None, "ab"]}, pa.string())) == ["animals", None, "animals"]
    two: dict[str, list[str | None]] = {"0": ["ab", None, "ab"], "1": ["animals", "animals", "music"]}
    assert ask(request("is_topic", two, pa.bool_())) == [True, None, False]
    assert ask(request("topic_score", two, pa.float64()))[:2] == [0.800000011920929, None]
    assert ask(request("topic", {"0": []}, pa.string())) == []


def test_ping() -> None:
    """A ping is answered with the query's id."""
    ping = {"@type": "PingRequest", "catalogName": "c", "queryId": "q", "identity": {}}
    answer = answer_athena(ping, api_of(), "request-1", lambda: math.inf)
    assert (answer["@type"], answer["catalogName"], answer["queryId"]) == ("PingResponse", "c", "q")


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (request("upper", {"0": ["ab"]}, pa.string()), "an unknown function"),
        (request("is_topic", {"0": [SECRET], "1": ["sports"]}, pa.bool_()), "Use one of: animals"),
        (request("topic", {"0": [SECRET], "1": [SECRET]}, pa.string()), "length"),
        ({"@type": "ListTablesRequest"}, "neither a ping"),
    ],
)
def test_refused(event: dict[str, Any], said: str) -> None:
    """What has no answer ends the query with a message, which holds no text."""
    with pytest.raises(NotAnswered) as caught:
        answer_athena(event, api_of(), "request-1", lambda: math.inf)
    assert said in str(caught.value)
    assert SECRET not in str(caught.value)


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """An image without pyarrow says what to add."""
    event = request("topic", {"0": ["ab"]}, pa.string())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(NotAnswered, match=r"ImageExtra=pyarrow"):
        answer_athena(event, api_of(), "request-1", lambda: math.inf)
