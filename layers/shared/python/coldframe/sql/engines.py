"""The contracts of database engines: a batch to columns, and values to the reply that the engine reads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UnsetType
from msgspec.json import Decoder

from coldframe.sql import schemas
from coldframe.sql.functions import Column, Value


class Batch(NamedTuple):
    """A batch of an engine. numbers: Snowflake's row numbers; empty elsewhere. batch_id: the engine's own.

    model, head: None for the default.
    """

    columns: list[Column]
    numbers: Sequence[int]
    batch_id: str
    model: str | None
    head: str | None


class Engine(NamedTuple):
    """One engine's contract.

    decoders: by the number of arguments. smaller: advice on how to make the engine send smaller batches.
    read: makes a batch of a decoded body, its number of arguments and the request's headers.
    write: makes the reply to a batch with these values.
    """

    decoders: Mapping[int, Decoder[Any]]
    example: str
    smaller: str
    read: Callable[[Any, int, Mapping[str, str]], Batch]
    write: Callable[[Batch, Sequence[Value]], object]


def _read_snowflake(body: Any, arguments: int, headers: Mapping[str, str]) -> Batch:
    """HEADERS = ('model' = '…', 'head' = '…') of an external function arrive as sf-custom-…"""
    numbers = [row[0] for row in body.data]
    columns = _columns([row[1:] for row in body.data], arguments)
    batch_id = headers.get("sf-external-function-query-batch-id", "")
    return Batch(columns, numbers, batch_id, headers.get("sf-custom-model"), headers.get("sf-custom-head"))


def _write_snowflake(batch: Batch, values: Sequence[Value]) -> schemas.SnowflakeReply:
    return schemas.SnowflakeReply([list(row) for row in zip(batch.numbers, values, strict=True)])


def _read_bigquery(body: Any, arguments: int, headers: Mapping[str, str]) -> Batch:
    context = body.user_defined_context or schemas.Context()
    columns = _columns(body.calls, arguments)
    return Batch(columns, [], body.request_id, _given(context.model), _given(context.head))


def _write_bigquery(batch: Batch, values: Sequence[Value]) -> schemas.BigQueryReply:
    return schemas.BigQueryReply(list(values))


def _read_redshift(body: Any, arguments: int, headers: Mapping[str, str]) -> Batch:
    """A null record has only nulls; a record that is not a list is its only argument."""
    nulls = (None,) * arguments
    rows = [nulls if row is None else (row,) if isinstance(row, str) else row for row in body.arguments]
    columns = _columns(rows, arguments)
    return Batch(columns, [], body.request_id, _given(body.model), _given(body.head))


def _write_redshift(batch: Batch, values: Sequence[Value]) -> schemas.RedshiftReply:
    """Redshift has no lists: an embedding is JSON in a VARCHAR."""
    plain = [msgspec.json.encode(value).decode() if isinstance(value, list) else value for value in values]
    return schemas.RedshiftReply(True, len(plain), plain)


def _columns(rows: Sequence[Sequence[str | None]], arguments: int) -> list[Column]:
    return [[row[argument] for row in rows] for argument in range(arguments)]


def _given(value: str | UnsetType) -> str | None:
    return None if isinstance(value, UnsetType) else value


ENGINES: Mapping[str, Engine] = {
    "snowflake": Engine(
        {1: Decoder(schemas.SnowflakeTexts), 2: Decoder(schemas.SnowflakeTextsAndLabels)},
        '{"data": [[0, "…"]]}',
        "Set MAX_BATCH_ROWS lower in CREATE EXTERNAL FUNCTION.",
        _read_snowflake,
        _write_snowflake,
    ),
    "bigquery": Engine(
        {1: Decoder(schemas.BigQueryTexts), 2: Decoder(schemas.BigQueryTextsAndLabels)},
        '{"calls": [["…"]]}',
        "Set max_batching_rows lower in the OPTIONS of CREATE FUNCTION.",
        _read_bigquery,
        _write_bigquery,
    ),
    # `aws_lambda.invoke` of Aurora PostgreSQL sends the same form.
    "redshift": Engine(
        {1: Decoder(schemas.RedshiftTexts), 2: Decoder(schemas.RedshiftTextsAndLabels)},
        '{"external_function": "f_topic", "arguments": [["…"]]}',
        "Set MAX_BATCH_ROWS or MAX_BATCH_SIZE lower in CREATE EXTERNAL FUNCTION.",
        _read_redshift,
        _write_redshift,
    ),
}
