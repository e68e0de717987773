"""Messages of database engines, by their published contracts.

Redshift: https://docs.aws.amazon.com/redshift/latest/dg/udf-creating-a-lambda-sql-udf.html
Snowflake: https://docs.snowflake.com/en/sql-reference/external-functions-data-format
BigQuery: https://cloud.google.com/bigquery/docs/remote-functions
All read 2026-11-22. Other fields are ignored, so engines may add some.
"""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

Text = str | None
Label = str | None

_ROWS = Meta(description="Rows; each is the arguments of one call. null is SQL's NULL.")
_NUMBERED = Meta(description="Rows: the number of the row, then the arguments of one call.")
_MODEL = Meta(description="The model that answers, by name.")
_HEAD = Meta(description="The head that answers.")


class Context(Struct):
    """Fields of `OPTIONS (user_defined_context = […])` of a remote function."""

    model: Annotated[str, _MODEL] | UnsetType = UNSET
    head: Annotated[str, _HEAD] | UnsetType = UNSET


class SnowflakeTexts(Struct):
    """A batch of an external function of one argument."""

    data: Annotated[list[tuple[int, Text]], _NUMBERED]


class SnowflakeTextsAndLabels(Struct):
    """A batch of an external function of a text and a label."""

    data: Annotated[list[tuple[int, Text, Label]], _NUMBERED]


class SnowflakeReply(Struct):
    """The number of each row, in the order received, and its value."""

    data: list[list[Any]]


class BigQueryTexts(Struct, rename="camel"):
    """A batch of a remote function of one argument."""

    calls: Annotated[list[tuple[Text]], _ROWS]
    request_id: str = ""
    user_defined_context: Context | None = None


class BigQueryTextsAndLabels(Struct, rename="camel"):
    """A batch of a remote function of a text and a label."""

    calls: Annotated[list[tuple[Text, Label]], _ROWS]
    request_id: str = ""
    user_defined_context: Context | None = None


class BigQueryReply(Struct):
    """A value for each call."""

    replies: list[Any]


class RedshiftTexts(Struct):
    """A batch of a Lambda UDF of one argument; a record may be null or bare.

    model, head: Redshift never sends them, `aws_lambda.invoke` may.
    """

    arguments: Annotated[list[tuple[Text] | str | None], _ROWS]
    request_id: str = ""
    model: Annotated[str, _MODEL] | UnsetType = UNSET
    head: Annotated[str, _HEAD] | UnsetType = UNSET


class RedshiftTextsAndLabels(Struct):
    """A batch of a Lambda UDF of a text and a label; a record may be null.

    model, head: Redshift never sends them, `aws_lambda.invoke` may.
    """

    arguments: Annotated[list[tuple[Text, Label] | None], _ROWS]
    request_id: str = ""
    model: Annotated[str, _MODEL] | UnsetType = UNSET
    head: Annotated[str, _HEAD] | UnsetType = UNSET


class RedshiftReply(Struct):
    """A value for each record."""

    success: bool
    num_records: int
    results: list[Any]
