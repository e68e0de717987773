"""Routes of engines: their published contracts, order and rows, errors as each expects them, repeats."""

import gzip
import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coldframe.api.api import Api, Reply, Request
from coldframe.columns import predict_column
from coldframe.config import Settings
from coldframe.timing import StartMark
from coldframe.vectors import to_floats
from coldframe_functions.predict.answer_sql import answer_sql, function_of
from tests.conftest import LABELS, TinyEncoder, sealed, served, tiny_manifest, tiny_predictor

CONTRACTS = {path.stem: json.loads(path.read_text()) for path in Path("tests/contracts").glob("*.json")}
SECRET = "a private letter"
NO_LIMIT: Callable[[], float] = lambda: math.inf  # noqa: E731


def api_of(encoder: TinyEncoder | None = None, lines: list[str] | None = None, **settings: Any) -> Api:
    """An engine whose default head is `auto`."""
    manifest = sealed(msgspec.structs.replace(tiny_manifest(), default_head="auto"))
    predictor = tiny_predictor(encoder, manifest=manifest)
    log = (lambda line: None) if lines is None else lines.append
    return Api(served(predictor), Settings(**settings), StartMark(), log)


def ask(api: Api, engine: str, function: str, body: object, **headers: str) -> Reply:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return api.answer(Request("POST", f"/v1/sql/{engine}/{function}", named, content, "request-1"))


def invoke(api: Api, event: Mapping[str, Any]) -> Any:
    """What Redshift reads of the function's result."""
    return json.loads(answer_sql(event, api, "request-1", NO_LIMIT))


@pytest.mark.parametrize(
    ("engine", "case"), [(engine, case) for engine, found in CONTRACTS.items() for case in found["cases"]]
)
def test_golden_files(engine: str, case: dict[str, Any]) -> None:
    """Each engine's request, as its documentation has it, gets the reply that it reads."""
    if engine == "redshift":
        assert invoke(api_of(), case["request"]) == case["reply"]
        return
    headers = CONTRACTS[engine]["headers"]
    content = json.dumps(case["request"]).encode()
    path = f"/v1/sql/{engine}/{case['function']}"
    reply = api_of().answer(Request("POST", path, headers, content))
    assert (reply.status, json.loads(reply.body)) == (200, case["reply"])


def batch(engine: str, rows: Sequence[Sequence[str | None]]) -> dict[str, Any]:
    """Rows as an engine sends them."""
    if engine == "snowflake":
        return {"data": [[number, *row] for number, row in enumerate(rows)]}
    if engine == "bigquery":
        return {"requestId": "r", "caller": "c", "sessionUser": "u", "calls": rows}
    return {"arguments": rows}


def values(engine: str, reply: Reply) -> list[Any]:
    """The values that an engine reads, checked for their number and their order."""
    body = json.loads(reply.body)
    if engine == "snowflake":
        assert [row[0] for row in body["data"]] == list(range(len(body["data"])))
        return [row[1] for row in body["data"]]
    if engine == "redshift":
        assert body["success"] is True
        assert body["num_records"] == len(body["results"])
        return list(body["results"])
    return list(body["replies"])


@pytest.mark.parametrize("engine", CONTRACTS)
def test_order_and_row_count_over_fuzzed_rows(engine: str) -> None:
    """100,000 odd rows in batches: each has its own value, in its place."""
    source = random.Random(15)
    pool = ["".join(source.choices("ab 1\t\x00é中🚀\u0301'\"%", k=source.randrange(9))) for _ in range(2000)]
    texts = [None if source.random() < 0.1 else source.choice(pool) for _ in range(100_000)]
    answers = predict_column(tiny_predictor(cache_bytes=0), texts, ["auto"])["auto"]
    api, found = api_of(), []
    for start in range(0, len(texts), 1000):
        rows = [[text] for text in texts[start : start + 1000]]
        found += values(engine, ask(api, engine, "topic", batch(engine, rows)))
    assert found == [None if answer is None else answer.label for answer in answers]


@pytest.mark.parametrize("engine", CONTRACTS)
def test_embeddings(engine: str) -> None:
    """An embedding is a list, and where an engine has no lists JSON in a string; no bit of it is lost."""
    found = values(engine, ask(api_of(), engine, "embedding", batch(engine, [["abc"], [None]])))
    vector = to_floats(tiny_predictor().embed(["abc"]).vectors[0])
    assert found == [json.dumps(vector, separators=(",", ":")) if engine == "redshift" else vector, None]


@pytest.mark.parametrize("engine", CONTRACTS)
def test_no_rows(engine: str) -> None:
    """A batch without rows is answered without values."""
    assert values(engine, ask(api_of(), engine, "is_topic", batch(engine, []))) == []


@pytest.mark.parametrize("engine", CONTRACTS)
def test_gzip(engine: str) -> None:
    """A batch may come compressed."""
    content = gzip.compress(json.dumps(batch(engine, [["ab"]])).encode())
    assert values(engine, ask(api_of(), engine, "topic", content, content_encoding="gzip")) == ["animals"]


@pytest.mark.parametrize("engine", CONTRACTS)
def test_a_repeated_batch(engine: str) -> None:
    """An engine that sends a batch again gets the same bytes, and the encoder has nothing to do."""
    encoder = TinyEncoder()
    api, body = api_of(encoder), batch(engine, [["abc"], [None], ["abcde"]])
    first, passes = ask(api, engine, "topic", body), len(encoder.batches)
    again = ask(api, engine, "topic", body)
    assert passes > 0
    assert (again.body, len(encoder.batches)) == (first.body, passes)


SMALLER = {"snowflake": "MAX_BATCH_ROWS", "bigquery": "max_batching_rows", "redshift": "MAX_BATCH_ROWS"}


@pytest.mark.parametrize("engine", CONTRACTS)
def test_too_large(engine: str) -> None:
    """Too many bytes, too many rows or too long an answer: 413, which names what to set."""
    rows = [["abc"]] * 11
    cases: list[tuple[dict[str, Any], str]] = [
        ({"max_body_bytes": 50}, "topic"),
        ({"max_texts": 10}, "topic"),
        ({"max_answer_bytes": 4096}, "embedding"),
    ]
    for limits, function in cases:
        body = batch(engine, rows * (5 if function == "embedding" else 1))
        reply = ask(api_of(**limits), engine, function, body)
        assert reply.status == 413
        assert SMALLER[engine] in json.loads(reply.body)["detail"]


def test_a_letter_counts_as_its_bytes() -> None:
    """A batch of Redshift's is as large as its UTF-8, not as JSON with an escape for each letter."""
    event = {"external_function": "f_topic", "arguments": [["ж" * 500]]}
    size = len(json.dumps(event, ensure_ascii=False).encode())
    assert invoke(api_of(max_body_bytes=size), event)["success"]
    assert not invoke(api_of(max_body_bytes=size - 100), event)["success"]


@pytest.mark.parametrize("engine", CONTRACTS)
@pytest.mark.parametrize(
    ("function", "row", "status"),
    [
        ("topic_score", [SECRET, "sports"], 422),
        ("topic", [SECRET, SECRET], 422),
        ("topic", [5], 422),
        ("topic", [], 422),
        ("embedding", ["\ud800"], 400),
    ],
)
def test_refused(engine: str, function: str, row: list[Any], status: int) -> None:
    """What is no batch of the function is refused as a whole; neither error nor log holds a text."""
    lines: list[str] = []
    reply = ask(api_of(lines=lines), engine, function, batch(engine, [["ab", None][: len(row)], row]))
    assert reply.status in (status, 422)
    assert SECRET not in reply.body.decode()
    assert SECRET not in "".join(lines)
    if engine == "redshift":
        event = {"external_function": f"f_{function}", **batch(engine, [row])}
        answer = invoke(api_of(), event)
        assert answer["success"] is False
        assert set(answer) == {"success", "error_msg"}
        assert answer["error_msg"]


def test_bigquery_shows_the_message() -> None:
    """BigQuery shows `errorMessage` to whoever asked, and takes less than 1 KB of it."""
    body = {"calls": [["ab", "sports"]]}
    problem = json.loads(ask(api_of(), "bigquery", "is_topic", body).body)
    assert problem["errorMessage"] == problem["detail"]
    assert "animals, music, weather" in problem["errorMessage"]
    assert len(problem["errorMessage"].encode()) < 1024
    assert "errorMessage" not in json.loads(ask(api_of(), "snowflake", "is_topic", {}).body)


@pytest.mark.parametrize("engine", CONTRACTS)
def test_no_time(engine: str) -> None:
    """A guess in a hurry is no answer to a query: the batch fails, and says what to set."""
    content = json.dumps(batch(engine, [["abc"]])).encode()
    path = f"/v1/sql/{engine}/topic"
    reply = api_of().answer(Request("POST", path, body=content, time_left_s=lambda: 0.25))
    assert reply.status == 503
    assert SMALLER[engine] in json.loads(reply.body)["detail"]


def test_model_and_head() -> None:
    """Model and head are chosen in each engine's own way; an unknown one is refused with those there are."""
    api, text = api_of(), "abc"
    (answer,) = predict_column(tiny_predictor(), [text], ["second"])["second"]
    assert answer is not None
    chosen = {"model": "topics", "head": "second"}
    replies = {
        "snowflake": ask(
            api,
            "snowflake",
            "topic",
            {"data": [[0, text]]},
            sf_custom_model="topics",
            sf_custom_head="second",
        ),
        "bigquery": ask(api, "bigquery", "topic", {"calls": [[text]], "userDefinedContext": chosen}),
        "redshift": ask(api, "redshift", "topic", {"arguments": [[text]], **chosen}),
    }
    for engine, reply in replies.items():
        assert values(engine, reply) == [answer.label]
    body = {"calls": [[text]], "userDefinedContext": {"model": "none"}}
    assert ask(api, "bigquery", "topic", body).status == 404
    assert ask(api, "snowflake", "topic", {"data": []}, sf_custom_head="none").status == 422


def test_a_text_as_head() -> None:
    """What may be a text in the place of a head is not repeated to whoever reads the query's errors."""
    for engine, body in {
        "bigquery": {"calls": [["ab"]], "userDefinedContext": {"head": SECRET}},
        "redshift": {"arguments": [["ab"]], "head": SECRET},
    }.items():
        refused = ask(api_of(), engine, "topic", body)
        assert refused.status == 422
        assert "is not a head of this model. Request one of: auto" in refused.body.decode()
        assert SECRET not in refused.body.decode()


def test_log() -> None:
    """The log line has rows, times and the engine's id of the batch, unless that could be a text."""
    lines: list[str] = []
    api = api_of(lines=lines)
    ask(api, "snowflake", "topic", {"data": [[0, "ab"]]}, sf_external_function_query_batch_id="01b0:1:1")
    ask(api, "bigquery", "topic", {"calls": [], "requestId": SECRET})
    first, second = map(json.loads, lines)
    assert (first["batch"], first["rows"], first["path"]) == ("01b0:1:1", 1, "/v1/sql/snowflake/topic")
    assert "batch" not in second


def test_many_threads() -> None:
    """Batches of many threads at once each get their own values."""
    api, source = api_of(), random.Random(3)
    batches = [["".join(source.choices("abc", k=source.randrange(7))) for _ in range(20)] for _ in range(200)]
    expected = [
        values("bigquery", ask(api_of(), "bigquery", "topic", batch("bigquery", [[t] for t in b])))
        for b in batches
    ]
    with ThreadPoolExecutor(16) as pool:
        found = list(
            pool.map(lambda b: ask(api, "bigquery", "topic", batch("bigquery", [[t] for t in b])), batches)
        )
    assert [values("bigquery", reply) for reply in found] == expected


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("public.f_topic", "topic"),
        ("F_IS_TOPIC", "is_topic"),
        ('"public"."f_topic_score"', "topic_score"),
        ("embedding", "embedding"),
        ("public.topics", None),
        ("", None),
    ],
)
def test_names_of_functions(name: str, function: str | None) -> None:
    """A function of any schema and prefix is known by how its name ends."""
    assert function_of(name) == function


def test_labels_are_the_models() -> None:
    """Every label of the model may be asked for."""
    rows = [["ab", label] for label in LABELS]
    assert values("bigquery", ask(api_of(), "bigquery", "is_topic", batch("bigquery", rows))) == [
        True,
        False,
        False,
    ]
