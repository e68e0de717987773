"""Transactions of moto's DynamoDB: whole or not at all while others write, at the cost of their items alone.

Before each transaction moto copies every item of its tables, and puts the copies back when a condition is not
met. What others have written meanwhile is lost, and of thousands of items each transaction takes seconds. So
requests to DynamoDB take turns here, and a transaction that is refused puts back the items that it names.
Source: moto 5.2, `moto.dynamodb.models.DynamoDBBackend.transact_write_items`.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from coldframe_local.emulator.stores.conflicts import Conflicts, KeyNames

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_TARGET = "DynamoDB_"
_JSON = "application/x-amz-json-1.0"
Undo = Callable[[], None]


def taking_turns(application: WSGIApplication, key_names: KeyNames) -> WSGIApplication:
    """The application, whose requests to DynamoDB are answered one after the other, or conflict."""
    turn, conflicts = threading.Lock(), Conflicts(key_names)

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        target = environ.get("HTTP_X_AMZ_TARGET", "")
        if not target.startswith(_TARGET):
            return application(environ, start_response)
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        with conflicts.during(target, body) as refusal:
            if refusal is not None:
                headers = [("content-type", _JSON), ("content-length", str(len(refusal)))]
                start_response("400 Bad Request", headers)
                return [refusal]
            with turn:
                return list(application(environ, start_response))

    return answer


def key_names(table: str) -> Sequence[str]:
    """Names of the key attributes of a table of moto's; none where there is no such table."""
    from moto.dynamodb.models import dynamodb_backends

    for account in list(dynamodb_backends.values()):
        for backend in list(account.values()):
            if table in backend.tables:
                return _key_names(backend.tables[table])
    return []


def undo_by_item() -> None:
    """From now on a transaction that is refused puts back what it named. Called once; requests take turns."""
    from moto.dynamodb.models import DynamoDBBackend

    transact = DynamoDBBackend.transact_write_items

    def transact_write_items(backend: Any, transact_items: Sequence[dict[str, Any]]) -> None:
        undoing = [_undo(backend, operation) for item in transact_items for operation in item.values()]
        try:
            with _tables_are_not_copied():
                transact(backend, transact_items)  # type: ignore[arg-type]
        except Exception:
            for undo in reversed(undoing):
                undo()
            raise

    DynamoDBBackend.transact_write_items = transact_write_items  # type: ignore[assignment,method-assign]


@contextmanager
def _tables_are_not_copied() -> Iterator[None]:
    from moto.dynamodb.models.table import Table

    Table.__deepcopy__ = lambda table, memo: table  # type: ignore[attr-defined]
    try:
        yield
    finally:
        del Table.__deepcopy__  # type: ignore[attr-defined]


def _key_names(table: Any) -> list[str]:
    return [name for name in (table.hash_key_attr, table.range_key_attr) if name]


def _undo(backend: Any, operation: dict[str, Any]) -> Undo:
    """Puts back the item of an operation as it is now. Nothing where the request names none: moto says so."""
    from moto.dynamodb.models.dynamo_type import DynamoType

    table = backend.tables.get(operation.get("TableName"))
    item = operation.get("Key") or operation.get("Item") or {}
    names = _key_names(table) if table else []
    if not names or any(name not in item for name in names):
        return lambda: None
    *outer, key = [DynamoType(item[name]) for name in names]

    def items() -> Any:
        return table.items[outer[0]] if outer else table.items

    before = deepcopy(items().get(key))

    def undo() -> None:
        if before is None:
            items().pop(key, None)
        else:
            items()[key] = before

    return undo
