"""`coldframe sql …`: the statements that create the functions in an engine."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import click

from coldframe.errors import ColdframeError
from coldframe.sql import statements
from coldframe_local.command_group import Group
from coldframe_local.paths import model_dir

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_.$-]*")
_FUNCTION_ARN = re.compile(
    r"arn:aws[a-z-]*:lambda:[a-z0-9-]+:\d{12}:function:[A-Za-z0-9_-]+(:[A-Za-z0-9_-]+)?"
)


class NoStack(ColdframeError):
    """The names of a deployment cannot be had."""


def _identifier(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not _IDENTIFIER.fullmatch(value):
        raise click.BadParameter(
            f"{value!r} is not a plain identifier. Expected letters, digits, _ . $ and -."
        )
    return value


def _address(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.startswith("https://"):
        raise click.BadParameter(f"{value!r} does not begin with https://.")
    return value and value.rstrip("/")


_STACK = click.option(
    "--stack", help="Deployed stack, whose outputs replace options that are left out.  [default: none]"
)
_FUNCTION = click.option(
    "--function", help="Function to invoke: NAME:ALIAS, or its ARN.  [default: the stack's]"
)
_URL = click.option("--url", callback=_address, help="Base address of the HTTP API.  [default: the stack's]")
_SCHEMA = click.option(
    "--schema",
    default="public",
    show_default=True,
    callback=_identifier,
    help="Where the functions are made.",
)


@click.group(cls=Group)
def sql() -> None:
    """Print the statements that create topic, topic_score, is_topic and embedding in an engine."""


@sql.command()
@_STACK
@_FUNCTION
@click.option(
    "--role", default="default", show_default=True, help="ARN of a role that may invoke the function."
)
@_SCHEMA
def redshift(stack: str | None, function: str | None, role: str, schema: str) -> None:
    """Amazon Redshift: Lambda UDFs."""
    name = function or statements.names(_outputs(stack, "--function"))[0]
    _print(statements.redshift(name, role, schema))


@sql.command()
@_STACK
@_FUNCTION
@_SCHEMA
def aurora(stack: str | None, function: str | None, schema: str) -> None:
    """Aurora PostgreSQL: functions over arrays, by the extension aws_lambda."""
    arn = function or statements.names(_outputs(stack, "--function"))[1]
    if not _FUNCTION_ARN.fullmatch(arn):
        raise click.BadParameter(f"{arn!r} is not an ARN of a function, which aws_lambda needs.")
    _print(statements.aurora(arn, schema))


@sql.command()
@_STACK
@_URL
@click.option(
    "--integration", default="coldframe", show_default=True, callback=_identifier, help="The API integration."
)
@click.option(
    "--role",
    help="ARN of the role that Snowflake takes on; the integration is then created, too.  [default: none]",
)
def snowflake(stack: str | None, url: str | None, integration: str, role: str | None) -> None:
    """Snowflake: external functions."""
    _print(statements.snowflake(url or _outputs(stack, "--url")["ApiUrl"], integration, role))


@sql.command()
@_STACK
@_URL
@click.option("--connection", required=True, callback=_identifier, help="PROJECT.LOCATION.NAME.")
@click.option("--dataset", required=True, callback=_identifier, help="Where the functions are made.")
def bigquery(stack: str | None, url: str | None, connection: str, dataset: str) -> None:
    """BigQuery: remote functions."""
    _print(statements.bigquery(url or _outputs(stack, "--url")["ApiUrl"], connection, dataset))


@sql.command()
@_STACK
@_FUNCTION
def athena(stack: str | None, function: str | None) -> None:
    """Athena: the clause before a query."""
    _print(statements.athena(function or statements.names(_outputs(stack, "--function"))[0]))


@sql.command()
def duckdb() -> None:
    """DuckDB: the lines of Python that register the functions."""
    _print(statements.duckdb(str(model_dir())))


def _print(statements: Iterable[str]) -> None:
    click.echo("\n\n".join(statements))


def _outputs(stack: str | None, instead: str) -> Mapping[str, str]:
    """Outputs of a stack by name. Raises NoStack."""
    if stack is None:
        raise click.UsageError(f"Give --stack, or {instead}.")
    return read_outputs(stack, _client())


def _client() -> Any:
    import boto3

    return boto3.client("cloudformation")


def read_outputs(stack: str, client: Any) -> Mapping[str, str]:
    """Outputs of a deployed stack by name. client: boto3's of CloudFormation. Raises NoStack."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        (description,) = client.describe_stacks(StackName=stack)["Stacks"]
    except (BotoCoreError, ClientError) as exc:
        raise NoStack(
            f"The stack {stack!r} cannot be described: {exc}. Check name, region and credentials."
        ) from exc
    outputs = {output["OutputKey"]: output["OutputValue"] for output in description.get("Outputs", [])}
    for name in ("ApiUrl", "PredictFunctionAliasArn"):
        if name not in outputs:
            raise NoStack(f"The stack {stack!r} has no output {name}, as Coldframe's template has it.")
    return outputs
