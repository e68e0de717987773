"""Conflicts of transactions: requests that are held open, and what is refused meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.test import Client

from coldframe_local.emulator.stores.conflicts import Conflicts
from coldframe_local.emulator.stores.transactions import key_names, taking_turns

TARGET = "DynamoDB_20120810."
WRITE, READ = "TransactWriteItems", "TransactGetItems"


def key(name: str) -> dict[str, Any]:
    return {"id": {"S": name}}


def single(operation: str, name: str) -> tuple[str, dict[str, Any]]:
    if operation == "PutItem":
        return operation, {"TableName": "t", "Item": {**key(name), "by": {"S": operation}}}
    return operation, {"TableName": "t", "Key": key(name)}


def transaction(operation: str, *names: str) -> tuple[str, dict[str, Any]]:
    kind, member = ("Put", "Item") if operation == WRITE else ("Get", "Key")
    return operation, {"TransactItems": [{kind: {"TableName": "t", member: key(name)}} for name in names]}


@contextmanager
def in_flight(conflicts: Conflicts, request: tuple[str, dict[str, Any]]) -> Iterator[dict[str, Any] | None]:
    operation, body = request
    with conflicts.during(TARGET + operation, json.dumps(body).encode()) as refusal:
        yield None if refusal is None else json.loads(refusal)


@pytest.mark.parametrize(
    ("first", "second", "codes"),
    [
        (transaction(WRITE, "a", "b"), transaction(WRITE, "b", "c"), ["TransactionConflict", "None"]),
        (transaction(WRITE, "a"), transaction(READ, "c", "a"), ["None", "TransactionConflict"]),
        (single("UpdateItem", "a"), transaction(READ, "a"), ["TransactionConflict"]),
        (transaction(WRITE, "a"), single("PutItem", "a"), "conflict"),
        (transaction(WRITE, "a"), single("UpdateItem", "a"), "conflict"),
        (transaction(WRITE, "a"), single("DeleteItem", "a"), "conflict"),
        (transaction(WRITE, "a"), single("GetItem", "a"), None),
        (transaction(WRITE, "a"), transaction(WRITE, "b"), None),
        (transaction(READ, "a"), transaction(WRITE, "a"), None),
        (transaction(READ, "a"), transaction(READ, "a"), None),
        (single("PutItem", "a"), transaction(WRITE, "a"), None),
        (single("PutItem", "a"), single("PutItem", "a"), None),
    ],
)
def test_what_conflicts(first: Any, second: Any, codes: Any) -> None:
    """Requests on one item conflict as AWS's table says, for as long as the first is in flight."""
    conflicts = Conflicts(lambda table: ["id"])
    with in_flight(conflicts, first) as none, in_flight(conflicts, second) as refusal:
        assert none is None
        if codes is None:
            assert refusal is None
        elif codes == "conflict":
            assert refusal is not None
            assert refusal["__type"].endswith("#TransactionConflictException")
        else:
            assert refusal is not None
            assert [reason["Code"] for reason in refusal["CancellationReasons"]] == codes
    with in_flight(conflicts, second) as refusal:
        assert refusal is None


@given(
    st.lists(
        st.tuples(st.sampled_from([WRITE, READ, "PutItem"]), st.sets(st.sampled_from("abcd"), min_size=1))
    )
)
def test_what_was_held_is_free_again(requests: list[tuple[str, set[str]]]) -> None:
    """After any requests, refused or not, every item may be written."""
    conflicts = Conflicts(lambda table: ["id"])
    with ExitStack() as stack:
        for operation, names in requests:
            request = (
                single(operation, min(names)) if operation == "PutItem" else transaction(operation, *names)
            )
            stack.enter_context(in_flight(conflicts, request))
    with in_flight(conflicts, transaction(WRITE, *"abcd")) as refusal:
        assert refusal is None


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"TransactItems": [{"Put": {"TableName": "none"}}]}'])
def test_requests_that_name_no_item(body: bytes) -> None:
    """A request that cannot be read holds nothing: DynamoDB says what is wrong with it."""
    conflicts = Conflicts(lambda table: [])
    with conflicts.during(TARGET + WRITE, body) as first, conflicts.during(TARGET + WRITE, body) as second:
        assert (first, second) == (None, None)


def test_two_transactions_at_once() -> None:
    """The second of two transactions on an item is cancelled while the first is held, and may be repeated."""
    inside, go_on = threading.Event(), threading.Event()
    with mock_aws():
        moto = DomainDispatcherApplication(create_backend_app)

        def held(environ: Any, start_response: Any) -> Any:
            if environ.get("HTTP_X_HELD"):
                inside.set()
                go_on.wait()
            return moto(environ, start_response)

        application = taking_turns(held, key_names)

        def ask(operation: str, body: dict[str, Any], held: str = "") -> tuple[int, dict[str, Any]]:
            credential = "AWS4-HMAC-SHA256 Credential=a/20261122/us-east-1/dynamodb/aws4_request"
            named = {"X-Amz-Target": TARGET + operation, "Authorization": credential, "X-Held": held}
            reply = Client(application).post(
                "/", data=json.dumps(body), content_type="application/x-amz-json-1.0", headers=named
            )
            return reply.status_code, json.loads(reply.data or "{}")

        ask(
            "CreateTable",
            {
                "TableName": "t",
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            },
        )
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(ask, *transaction(WRITE, "a", "b"), held="yes")
            inside.wait()
            try:
                status, cancelled = ask(*transaction(WRITE, "b", "c"))
                put_status, put = ask(*single("PutItem", "a"))
            finally:
                go_on.set()
            assert first.result()[0] == HTTPStatus.OK
        assert (status, put_status) == (HTTPStatus.BAD_REQUEST, HTTPStatus.BAD_REQUEST)
        assert [reason["Code"] for reason in cancelled["CancellationReasons"]] == [
            "TransactionConflict",
            "None",
        ]
        assert put["__type"].endswith("TransactionConflictException")
        assert ask(*transaction(WRITE, "b", "c"))[0] == HTTPStatus.OK
        names = {item["id"]["S"] for item in ask("Scan", {"TableName": "t"})[1]["Items"]}
        assert names == {"a", "b", "c"}
