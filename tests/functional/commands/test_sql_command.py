"""`coldframe sql`: statements with the names of a deployment filled in."""

import re

import boto3
import pytest
from botocore.stub import Stubber

from coldframe.sql import statements
from coldframe.sql.functions import FUNCTIONS
from coldframe_local.commands.sql import NoStack, read_outputs
from tests.functional.commands.test_cli import coldframe

ARN = "arn:aws:lambda:eu-west-1:123456789012:function:stack-PredictFunction-1a2b:live"
URL = "https://abc.execute-api.eu-west-1.amazonaws.com"
ROLE = "arn:aws:iam::123456789012:role/caller"


def printed(*arguments: str) -> str:
    done = coldframe("sql", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


REDSHIFT = ["redshift", "--function", "predict:live", "--role", ROLE]
BIGQUERY = ["bigquery", "--url", URL, "--connection", "p.eu.c", "--dataset", "d"]


@pytest.mark.parametrize(
    ("arguments", "statement"),
    [
        (REDSHIFT, "CREATE OR REPLACE EXTERNAL FUNCTION public.f_{}("),
        (["aurora", "--function", ARN], "CREATE OR REPLACE FUNCTION public.{}("),
        (["snowflake", "--url", URL], "CREATE OR REPLACE EXTERNAL FUNCTION {}("),
        (BIGQUERY, "CREATE OR REPLACE FUNCTION `d`.{}("),
    ],
)
def test_every_function_is_created(arguments: list[str], statement: str) -> None:
    """Each engine gets a statement for each function, ended by a semicolon."""
    text = printed(*arguments)
    found = text.split(";\n\n")
    assert len(found) == len(FUNCTIONS)
    assert all(part.startswith(statement.format(name)) for part, name in zip(found, FUNCTIONS, strict=True))
    assert text.endswith(";\n")


def test_batches_fit_the_function() -> None:
    """Batches are limited to what the function takes; those of embeddings to what it can answer."""
    redshift = printed("redshift", "--function", "predict:live")
    assert re.findall(r"MAX_BATCH_ROWS (\d+);", redshift) == ["1024", "1024", "1024", "500"]
    assert redshift.count("LAMBDA 'predict:live' IAM_ROLE default") == 4
    snowflake = printed("snowflake", "--url", f"{URL}/")
    assert f"AS '{URL}/v1/sql/snowflake/is_topic';" in snowflake
    assert "COMPRESSION = GZIP" in snowflake
    assert "API INTEGRATION IF" not in snowflake


@pytest.mark.parametrize(
    "arguments", [REDSHIFT, ["aurora", "--function", ARN], ["snowflake", "--url", URL]], ids=lambda a: a[0]
)
def test_no_engine_keeps_answers(arguments: list[str]) -> None:
    """Every function is VOLATILE: after a deployment its answer to the same text may be another one."""
    text = printed(*arguments)
    assert text.count(" VOLATILE") == len(FUNCTIONS)
    assert "IMMUTABLE" not in text and "STABLE" not in text


def test_integration_of_snowflake() -> None:
    """With a role, the statement that creates the integration comes first."""
    text = printed("snowflake", "--url", URL, "--role", ROLE, "--integration", "cold")
    assert text.startswith("CREATE API INTEGRATION IF NOT EXISTS cold API_PROVIDER = aws_api_gateway")
    assert f"API_ALLOWED_PREFIXES = ('{URL}/v1/sql/snowflake/')" in text
    assert text.count("API_INTEGRATION = cold") == 4


def test_duckdb() -> None:
    """For DuckDB there are lines of Python."""
    assert "coldframe.duckdb.register(connection, " in printed("duckdb")


def test_text_is_quoted() -> None:
    """A quote in a name ends no literal."""
    (first, *_) = statements.redshift("it's", "default")
    assert "LAMBDA 'it''s'" in first


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["redshift"], "Give --stack, or --function"),
        (["snowflake", "--url", "http://x"], "does not begin with https://"),
        (["bigquery", "--url", URL, "--connection", "p`x", "--dataset", "d"], "is not a plain identifier"),
        (["redshift", "--function", "f", "--schema", "a; drop"], "is not a plain identifier"),
        (["aurora", "--function", "predict"], "is not an ARN of a function"),
    ],
)
def test_refused(arguments: list[str], said: str) -> None:
    """What would make no statement is refused."""
    done = coldframe("sql", *arguments)
    assert done.returncode > 0
    assert said in done.stderr


def described(outputs: dict[str, str]) -> dict[str, object]:
    """A stack as CloudFormation describes it."""
    found = [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]
    return {
        "Stacks": [{"StackName": "s", "CreationTime": 0, "StackStatus": "CREATE_COMPLETE", "Outputs": found}]
    }


def test_names_of_a_stack(aws_environ: dict[str, str]) -> None:
    """A stack's outputs have the alias that is to be invoked and the address of the API."""
    client = boto3.client("cloudformation")
    with Stubber(client) as stub:
        stub.add_response("describe_stacks", described({"ApiUrl": URL, "PredictFunctionAliasArn": ARN}))
        outputs = read_outputs("s", client)
        assert statements.names(outputs) == ("stack-PredictFunction-1a2b:live", ARN)
        assert outputs["ApiUrl"] == URL
        stub.add_response("describe_stacks", described({"Other": "x"}))
        with pytest.raises(NoStack, match="has no output ApiUrl"):
            read_outputs("s", client)
        stub.add_client_error("describe_stacks", "ValidationError", "Stack with id s does not exist")
        with pytest.raises(NoStack, match="does not exist"):
            read_outputs("s", client)
    client.close()
