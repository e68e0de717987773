"""The statements that create the functions in each engine, with the names of a deployment filled in.

Redshift: https://docs.aws.amazon.com/redshift/latest/dg/r_CREATE_EXTERNAL_FUNCTION.html
Snowflake: https://docs.snowflake.com/en/sql-reference/sql/create-external-function
BigQuery: https://cloud.google.com/bigquery/docs/remote-functions
Aurora: https://docs.aws.amazon.com/AmazonRDS/latest/AuroraUserGuide/PostgreSQL-Lambda-functions.html
All read 2026-11-22.

Functions are VOLATILE, which is also how BigQuery treats remote ones: a deployment may bring another model at
any moment, so no engine may keep an answer, nor take two answers of one query for equal. Engines allow STABLE
for answers that are equal within a query, and IMMUTABLE for answers that never change.
"""

from collections.abc import Iterator, Mapping

from coldframe.setting_facts import MAX_TEXTS
from coldframe.sql.functions import FUNCTIONS

_EMBEDDING_ROWS = 500  # 384 numbers as JSON take 8 KB: this many rows fit into a function's result of 6 MB
_REDSHIFT = {
    "topic": "VARCHAR(256)",
    "topic_score": "FLOAT8",
    "is_topic": "BOOLEAN",
    "embedding": "VARCHAR(65535)",
}
_SNOWFLAKE = {"topic": "VARCHAR", "topic_score": "FLOAT", "is_topic": "BOOLEAN", "embedding": "ARRAY"}
_BIGQUERY = {"topic": "STRING", "topic_score": "FLOAT64", "is_topic": "BOOL", "embedding": "JSON"}
_POSTGRES = {"topic": "text", "topic_score": "double precision", "is_topic": "boolean", "embedding": "jsonb"}


def redshift(function: str, role: str, schema: str = "public") -> Iterator[str]:
    """Lambda UDFs. function: NAME:ALIAS. role: ARN of a role that may invoke it, or `default`."""
    iam = "default" if role == "default" else _text(role)
    for name, kind in _REDSHIFT.items():
        arguments = ", ".join(["VARCHAR(65535)", "VARCHAR(256)"][: FUNCTIONS[name]])
        yield (
            f"CREATE OR REPLACE EXTERNAL FUNCTION {schema}.f_{name}({arguments}) RETURNS {kind} VOLATILE\n"
            f"LAMBDA {_text(function)} IAM_ROLE {iam} MAX_BATCH_ROWS {_rows(name)};"
        )


def snowflake(url: str, integration: str, role: str | None = None) -> Iterator[str]:
    """External functions behind an API integration; with a role, also the statement that creates the
    integration.
    """
    if role is not None:
        yield (
            f"CREATE API INTEGRATION IF NOT EXISTS {integration} API_PROVIDER = aws_api_gateway"
            f" API_AWS_ROLE_ARN = {_text(role)}\n"
            f"API_ALLOWED_PREFIXES = ({_text(url + '/v1/sql/snowflake/')}) ENABLED = TRUE;"
        )
    for name, kind in _SNOWFLAKE.items():
        arguments = ", ".join(["text VARCHAR", "label VARCHAR"][: FUNCTIONS[name]])
        yield (
            f"CREATE OR REPLACE EXTERNAL FUNCTION {name}({arguments}) RETURNS {kind} NULL VOLATILE\n"
            f"API_INTEGRATION = {integration} MAX_BATCH_ROWS = {_rows(name)} COMPRESSION = GZIP\n"
            f"AS {_text(f'{url}/v1/sql/snowflake/{name}')};"
        )


def bigquery(url: str, connection: str, dataset: str) -> Iterator[str]:
    """Remote functions. connection: PROJECT.LOCATION.NAME of a cloud resource connection."""
    for name, kind in _BIGQUERY.items():
        arguments = ", ".join(["text STRING", "label STRING"][: FUNCTIONS[name]])
        yield (
            f"CREATE OR REPLACE FUNCTION `{dataset}`.{name}({arguments}) RETURNS {kind}\n"
            f"REMOTE WITH CONNECTION `{connection}`\n"
            f"OPTIONS (endpoint = {_text(f'{url}/v1/sql/bigquery/{name}')},"
            f" max_batching_rows = {_rows(name)});"
        )


def aurora(function: str, schema: str = "public") -> Iterator[str]:
    """Functions over arrays, so that one invocation answers many rows. function: an ARN, with its alias."""
    for name, kind in _POSTGRES.items():
        labelled = FUNCTIONS[name] == 2
        arguments = "texts text[], label text" if labelled else "texts text[]"
        record = "json_build_array(body, label)" if labelled else "json_build_array(body)"
        yield _AURORA.format(
            name=f"{schema}.{name}",
            arguments=arguments,
            kind=kind,
            function=_text(function),
            record=record,
            sql=name,
        )


def athena(function: str) -> Iterator[str]:
    """The clause before a query: Athena stores no functions."""
    kinds = {"topic": "VARCHAR", "topic_score": "DOUBLE", "is_topic": "BOOLEAN"}
    clauses = [
        f"EXTERNAL FUNCTION {name}({', '.join(['text VARCHAR', 'label VARCHAR'][: FUNCTIONS[name]])})"
        f" RETURNS {kind} LAMBDA {_text(function)}"
        for name, kind in kinds.items()
    ]
    yield "USING\n" + ",\n".join(clauses) + "\nSELECT …"


def duckdb(model_dir: str) -> Iterator[str]:
    """Lines of Python, since DuckDB's functions live in its process."""
    yield (
        "import coldframe.duckdb  # in a checkout: pip install --editable '.[duckdb]'\n"
        f"coldframe.duckdb.register(connection, {model_dir!r})"
    )


_AURORA = """CREATE OR REPLACE FUNCTION {name}({arguments}) RETURNS {kind}[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE answer json;
BEGIN
  SELECT payload INTO answer FROM aws_lambda.invoke(
    aws_commons.create_lambda_function_arn({function}),
    json_build_object('external_function', '{sql}', 'arguments', (
      SELECT coalesce(json_agg({record} ORDER BY place), '[]'::json)
      FROM unnest(texts) WITH ORDINALITY AS given(body, place))));
  IF json_typeof(answer) = 'string' THEN answer := (answer #>> '{{}}')::json; END IF;
  IF (answer ->> 'success')::boolean IS NOT TRUE THEN
    RAISE EXCEPTION '%', coalesce(answer ->> 'error_msg', answer ->> 'errorMessage', 'the function failed');
  END IF;
  RETURN ARRAY(
    SELECT value::{kind} FROM json_array_elements_text(answer -> 'results')
      WITH ORDINALITY AS found(value, place) ORDER BY place);
END $$;"""


def _rows(function: str) -> int:
    """Rows of a batch that the function accepts by its default settings, and whose answer fits into its
    result.
    """
    return _EMBEDDING_ROWS if function == "embedding" else MAX_TEXTS


def _text(value: str) -> str:
    """A literal of SQL."""
    return "'" + value.replace("'", "''") + "'"


def names(outputs: Mapping[str, str]) -> tuple[str, str]:
    """NAME:ALIAS and ARN of the function in a stack's outputs.

    Lambda's Invoke takes both for a function's name.
    https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html, read 2026-11-22
    """
    arn = outputs["PredictFunctionAliasArn"]
    return ":".join(arn.split(":")[6:]), arn
