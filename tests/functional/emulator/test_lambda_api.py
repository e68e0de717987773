"""The Lambda API as boto3 and the AWS CLI use it, against real environments."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.options import EmulatorOptions, one_function
from tests.support.emulation import HERE

pytestmark = [pytest.mark.waits, pytest.mark.anyio]

AWS = Path(sys.executable).parent / "aws"
PATIENCE_S = 60.0
NAME = "coldframe-predict"
NO_JSON = [
    pytest.param(b"not json", id="text"),
    pytest.param(b'"\xff"', id="not UTF-8"),
    pytest.param(b"[" * 100_000, id="too deep"),
]


@pytest.fixture
async def emulator(lines: list[str], tmp_path: Path) -> AsyncIterator[Emulator]:
    options = EmulatorOptions(
        one_function("handlers.told", HERE, memory_mb=512, timeout_s=20.0),
        port=0,
        log=lines.append,
        max_environments=3,
        environ={"GATE": str(tmp_path)},
    )
    async with Emulator(options) as running:
        yield running


@pytest.fixture
def client(emulator: Emulator, aws_environ: dict[str, str]) -> Iterator[Any]:
    """boto3's client, without retries."""
    config = Config(retries={"total_max_attempts": 1}, read_timeout=PATIENCE_S)
    made = boto3.client("lambda", endpoint_url=emulator.url, config=config)
    yield made
    made.close()


async def called(function: Callable[..., Any], **arguments: Any) -> Any:
    """A call of boto3, which blocks, beside the emulator's event loop."""
    return await asyncio.to_thread(function, **arguments)


@contextmanager
def refused(code: str, status: int) -> Iterator[dict[str, Any]]:
    """The call ends in this error; what AWS says of it."""
    said: dict[str, Any] = {}
    with pytest.raises(ClientError) as caught:
        yield said
    said |= caught.value.response
    assert said["Error"]["Code"] == code
    assert said["ResponseMetadata"]["HTTPStatusCode"] == status


async def test_invoke(client: Any) -> None:
    """The payload goes in as the event and comes back as the result, with version and request id."""
    answer = await called(client.invoke, FunctionName=NAME, Payload=b'{"do": "echo", "a": [1]}')
    assert (answer["StatusCode"], answer["ExecutedVersion"]) == (200, "$LATEST")
    assert "FunctionError" not in answer
    assert "LogResult" not in answer
    result = json.loads(answer["Payload"].read())
    assert result["event"] == {"do": "echo", "a": [1]}
    assert result["request_id"] == answer["ResponseMetadata"]["RequestId"]


async def test_invoke_without_a_payload(client: Any) -> None:
    """No payload is the event {}."""
    answer = await called(client.invoke, FunctionName=NAME)
    assert json.loads(answer["Payload"].read())["event"] == {}


async def test_log_tail(client: Any) -> None:
    """LogType=Tail brings the invocation's lines, START to REPORT, in base64."""
    answer = await called(client.invoke, FunctionName=NAME, Payload=b'{"do": "speak"}', LogType="Tail")
    assert answer["Payload"].read() == b"{}"
    log = base64.b64decode(answer["LogResult"]).decode().splitlines()
    assert [line.split(" ")[0] for line in log] == ["START", "first", "END", "REPORT"]


@pytest.mark.parametrize(
    ("name", "qualifier", "version", "arn_end"),
    [
        (NAME, None, "$LATEST", f":{NAME}"),
        (f"{NAME}:live", None, "1", f":{NAME}:live"),
        (NAME, "1", "1", f":{NAME}:1"),
        (NAME, "$LATEST", "$LATEST", f":{NAME}:$LATEST"),
        (f"123456789012:function:{NAME}", "live", "1", f":{NAME}:live"),
        (f"function:{NAME}", None, "$LATEST", f":{NAME}"),
        (f"arn:aws:lambda:us-east-1:123456789012:function:{NAME}:live", "live", "1", f":{NAME}:live"),
    ],
)
async def test_names_and_qualifiers(
    client: Any, name: str, qualifier: str | None, version: str, arn_end: str
) -> None:
    """A function is found by name, partial ARN or ARN, with a qualifier in it or beside it."""
    arguments = {"FunctionName": name} | ({"Qualifier": qualifier} if qualifier else {})
    answer = await called(client.invoke, Payload=b'{"do": "echo"}', **arguments)
    assert answer["ExecutedVersion"] == version
    assert json.loads(answer["Payload"].read())["arn"].endswith(arn_end)


async def test_function_error(client: Any) -> None:
    """A function that raises answers 200 with FunctionError and the runtime's error object."""
    answer = await called(client.invoke, FunctionName=NAME, Payload=b'{"do": "fail"}')
    assert (answer["StatusCode"], answer["FunctionError"]) == (200, "Unhandled")
    error = json.loads(answer["Payload"].read())
    assert (error["errorType"], error["errorMessage"]) == ("LookupError", "no such key")
    assert error["requestId"] == answer["ResponseMetadata"]["RequestId"]
    assert error["stackTrace"]


async def test_crash(client: Any) -> None:
    """A function whose process ends answers 200 with FunctionError and Lambda's words."""
    answer = await called(client.invoke, FunctionName=NAME, Payload=b'{"do": "leave"}')
    assert (answer["StatusCode"], answer["FunctionError"]) == (200, "Unhandled")
    request_id = answer["ResponseMetadata"]["RequestId"]
    assert json.loads(answer["Payload"].read()) == {
        "errorType": "Runtime.ExitError",
        "errorMessage": f"RequestId: {request_id} Error: Runtime exited with error: exit status 3",
    }


async def test_dry_run(client: Any, lines: list[str]) -> None:
    """A dry run answers 204 and runs nothing; it still asks for a function that exists."""
    answer = await called(client.invoke, FunctionName=NAME, InvocationType="DryRun")
    assert (answer["StatusCode"], answer["Payload"].read()) == (204, b"")
    with refused("ResourceNotFoundException", 404):
        await called(client.invoke, FunctionName="nobody", InvocationType="DryRun")
    assert lines == []


async def test_asynchronous_event(client: Any, emulator: Emulator, lines: list[str]) -> None:
    """An event is accepted with 202 and an empty body, and runs afterwards."""
    answer = await called(
        client.invoke, FunctionName=NAME, InvocationType="Event", Payload=b'{"do": "speak"}'
    )
    assert (answer["StatusCode"], answer["Payload"].read()) == (202, b"")
    await emulator.asynchronous.idle()
    assert "first line" in lines


async def test_provisioned_concurrency(client: Any) -> None:
    """Put answers IN_PROGRESS, Get later READY, List has it, and Delete ends it."""
    put = await called(
        client.put_provisioned_concurrency_config,
        FunctionName=NAME, Qualifier="live", ProvisionedConcurrentExecutions=2,
    )  # fmt: skip
    assert put["ResponseMetadata"]["HTTPStatusCode"] == 202
    assert (put["Status"], put["RequestedProvisionedConcurrentExecutions"]) == ("IN_PROGRESS", 2)
    one = {"FunctionName": NAME, "Qualifier": "live"}
    async with asyncio.timeout(PATIENCE_S):
        while True:
            got = await called(client.get_provisioned_concurrency_config, **one)
            if got["Status"] == "READY":
                break
            await asyncio.sleep(0.02)  # on one core the environments start while this test rests
    assert got["AvailableProvisionedConcurrentExecutions"] == 2
    assert got["AllocatedProvisionedConcurrentExecutions"] == 2
    listed = await called(client.list_provisioned_concurrency_configs, FunctionName=NAME)
    [config] = listed["ProvisionedConcurrencyConfigs"]
    assert config["FunctionArn"] == f"arn:aws:lambda:us-east-1:123456789012:function:{NAME}:live"
    await called(client.delete_provisioned_concurrency_config, **one)
    with refused("ProvisionedConcurrencyConfigNotFoundException", 404):
        await called(client.get_provisioned_concurrency_config, **one)


async def test_provisioned_concurrency_of_latest(client: Any) -> None:
    """`$LATEST` has none, as on Lambda."""
    with refused("InvalidParameterValueException", 400) as said:
        await called(
            client.put_provisioned_concurrency_config,
            FunctionName=NAME, Qualifier="$LATEST", ProvisionedConcurrentExecutions=1,
        )  # fmt: skip
    assert "unpublished function versions" in said["Error"]["Message"]


async def test_reserved_concurrency(client: Any) -> None:
    """Reserved concurrency is put, read, shown by GetFunction and the account, and deleted."""
    put = await called(client.put_function_concurrency, FunctionName=NAME, ReservedConcurrentExecutions=5)
    assert put["ReservedConcurrentExecutions"] == 5
    got = await called(client.get_function_concurrency, FunctionName=NAME)
    assert got["ReservedConcurrentExecutions"] == 5
    function = await called(client.get_function, FunctionName=NAME)
    assert function["Concurrency"] == {"ReservedConcurrentExecutions": 5}
    account = await called(client.get_account_settings)
    assert account["AccountLimit"]["ConcurrentExecutions"] == 1000
    assert account["AccountLimit"]["UnreservedConcurrentExecutions"] == 995
    assert account["AccountUsage"]["FunctionCount"] == 1
    await called(client.delete_function_concurrency, FunctionName=NAME)
    got = await called(client.get_function_concurrency, FunctionName=NAME)
    assert "ReservedConcurrentExecutions" not in got


async def test_switched_off(client: Any) -> None:
    """A reserved concurrency of 0 throttles everything, with Lambda's reason."""
    await called(client.put_function_concurrency, FunctionName=NAME, ReservedConcurrentExecutions=0)
    with refused("TooManyRequestsException", 429) as said:
        await called(client.invoke, FunctionName=NAME)
    assert said["Reason"] == "ReservedFunctionConcurrentInvocationLimitExceeded"
    assert said["Type"] == "User"
    assert said["Error"]["Message"] == "Rate Exceeded."


async def test_function_and_its_versions(client: Any, emulator: Emulator) -> None:
    """Functions, configurations, versions and aliases have the shapes that boto3 knows."""
    function = (await called(client.get_function, FunctionName=NAME))["Configuration"]
    assert (function["MemorySize"], function["Timeout"], function["State"]) == (512, 20, "Active")
    assert (function["Handler"], function["PackageType"], function["Version"]) == (
        "handlers.told",
        "Zip",
        "$LATEST",
    )
    configuration = await called(client.get_function_configuration, FunctionName=NAME, Qualifier="live")
    assert (configuration["Version"], configuration["FunctionArn"].split(":")[-1]) == ("1", "live")
    assert "GATE" in configuration["Environment"]["Variables"]
    assert not any(name.startswith("AWS_") for name in configuration["Environment"]["Variables"])
    listed = await called(client.list_functions)
    assert [each["FunctionName"] for each in listed["Functions"]] == [NAME]
    emulator.service.recycle(NAME)  # its code has changed
    published = await called(client.publish_version, FunctionName=NAME)
    assert published["Version"] == "2"
    versions = await called(client.list_versions_by_function, FunctionName=NAME)
    assert [each["Version"] for each in versions["Versions"]] == ["$LATEST", "1", "2"]
    await called(client.update_alias, FunctionName=NAME, Name="live", FunctionVersion="2")
    alias = await called(client.get_alias, FunctionName=NAME, Name="live")
    assert (alias["FunctionVersion"], alias["AliasArn"].split(":")[-1]) == ("2", "live")
    aliases = await called(client.list_aliases, FunctionName=NAME, FunctionVersion="2")
    assert [each["Name"] for each in aliases["Aliases"]] == ["live"]


async def test_alias_with_weights(client: Any) -> None:
    """It is refused rather than half done; one without weights is an alias of one version."""
    some, none = ({"AdditionalVersionWeights": weights} for weights in ({"1": 0.1}, {}))
    with refused("InvalidParameterValueException", 400) as said:
        await called(
            client.update_alias, FunctionName=NAME, Name="live", FunctionVersion="1", RoutingConfig=some
        )
    assert "RoutingConfig" in said["Error"]["Message"]
    await called(client.update_alias, FunctionName=NAME, Name="live", FunctionVersion="1", RoutingConfig=none)


@pytest.mark.parametrize("query", ["MaxItems=0", "MaxItems=-1", "MaxItems=few", "Marker=-1"])
async def test_page_that_there_cannot_be(emulator: Emulator, query: str) -> None:
    """It is refused, not answered with a page that leads nowhere."""
    async with httpx.AsyncClient(base_url=emulator.url, timeout=PATIENCE_S, trust_env=False) as web:
        response = await web.get(f"/2015-03-31/functions/?{query}")
    assert response.status_code == 400
    assert response.headers["x-amzn-errortype"] == "InvalidParameterValueException"


async def test_pages(client: Any, emulator: Emulator) -> None:
    """Lists come in pages, as boto3's paginators expect."""
    emulator.service.recycle(NAME)  # its code has changed
    await called(client.publish_version, FunctionName=NAME)

    def all_versions() -> list[str]:
        pages = client.get_paginator("list_versions_by_function").paginate(
            FunctionName=NAME, PaginationConfig={"PageSize": 2}
        )
        return [version["Version"] for page in pages for version in page["Versions"]]

    assert await called(all_versions) == ["$LATEST", "1", "2"]


async def test_unknown_function(client: Any) -> None:
    """Functions, aliases and regions that are not there are named as on Lambda."""
    with refused("ResourceNotFoundException", 404) as said:
        await called(client.invoke, FunctionName="nobody")
    assert said["Error"]["Message"].startswith("Function not found: ")
    with refused("ResourceNotFoundException", 404):
        await called(client.invoke, FunctionName=NAME, Qualifier="blue")
    with refused("ResourceNotFoundException", 404) as said:
        await called(client.get_alias, FunctionName=NAME, Name="blue")
    assert said["Error"]["Message"].startswith("Cannot find alias arn: ")
    with refused("ResourceNotFoundException", 404) as said:
        arn = f"arn:aws:lambda:eu-west-1:123456789012:function:{NAME}"
        await called(client.invoke, FunctionName=arn)
    assert "not reachable in this region ('us-east-1')" in said["Error"]["Message"]


async def test_qualifiers_that_differ(client: Any) -> None:
    """A qualifier in the name and another one beside it are refused."""
    with refused("InvalidParameterValueException", 400) as said:
        await called(client.invoke, FunctionName=f"{NAME}:live", Qualifier="1")
    assert "does not match the specified qualifier" in said["Error"]["Message"]


@pytest.mark.parametrize("payload", NO_JSON)
async def test_payload_that_is_no_json(client: Any, lines: list[str], payload: bytes) -> None:
    """It is refused before anything runs."""
    with refused("InvalidRequestContentException", 400):
        await called(client.invoke, FunctionName=NAME, Payload=payload)
    assert lines == []


@pytest.mark.parametrize("body", [*NO_JSON, b"[]", b"{}", b'{"ReservedConcurrentExecutions": true}'])
async def test_body_that_says_nothing(emulator: Emulator, body: bytes) -> None:
    """A call whose body lacks what it is for is refused, whatever else is in it."""
    async with httpx.AsyncClient(base_url=emulator.url, timeout=PATIENCE_S, trust_env=False) as web:
        response = await web.put(f"/2017-10-31/functions/{NAME}/concurrency", content=body)
    assert response.status_code == 400
    assert response.headers["x-amzn-errortype"] == "InvalidParameterValueException"
    assert "ReservedConcurrentExecutions" in response.json()["message"]


@pytest.mark.parametrize(
    ("kind", "size", "limit"), [("Event", 1_048_577, 1_048_576), ("RequestResponse", 6_291_457, 6_291_456)]
)
async def test_payload_that_is_too_large(client: Any, kind: str, size: int, limit: int) -> None:
    """Synchronous and asynchronous payloads have their own limits, which the error names."""
    payload = b'"' + b"x" * (size - 2) + b'"'
    with refused("RequestTooLargeException", 413) as said:
        await called(client.invoke, FunctionName=NAME, InvocationType=kind, Payload=payload)
    assert str(limit) in said["Error"]["Message"]


async def test_operation_that_is_not_imitated(client: Any) -> None:
    """It says so, and where functions come from."""
    with refused("UnknownOperationException", 501) as said:
        await called(client.delete_function, FunctionName=NAME)
    assert "come from the template" in said["Error"]["Message"]


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        ("GetFunction", f"/2015-03-31/functions/{NAME}"),
        ("GetFunctionConfiguration", f"/2015-03-31/functions/{NAME}/configuration"),
        ("ListFunctions", "/2015-03-31/functions?FunctionVersion=ALL"),
        ("ListVersionsByFunction", f"/2015-03-31/functions/{NAME}/versions"),
        ("ListAliases", f"/2015-03-31/functions/{NAME}/aliases"),
        ("GetAlias", f"/2015-03-31/functions/{NAME}/aliases/live"),
        ("GetFunctionConcurrency", f"/2019-09-30/functions/{NAME}/concurrency"),
        (
            "ListProvisionedConcurrencyConfigs",
            f"/2019-09-30/functions/{NAME}/provisioned-concurrency?List=ALL",
        ),
        ("GetAccountSettings", "/2016-08-19/account-settings"),
    ],
)
async def test_answers_have_the_shapes_of_the_model(
    client: Any, emulator: Emulator, operation: str, path: str
) -> None:
    """No answer has a member, at any depth, that botocore's model does not know."""
    emulator.service.concurrency.put_reserved(NAME, 3)
    model = client.meta.service_model.operation_model(operation)
    async with httpx.AsyncClient(base_url=emulator.url, trust_env=False) as web:
        answer = (await web.get(path)).json()
    assert answer
    assert unknown_members(answer, model.output_shape) == []


def unknown_members(value: Any, shape: Any) -> list[str]:
    if value is None or shape.type_name not in ("structure", "list"):
        return []
    if shape.type_name == "list":
        return [name for item in value for name in unknown_members(item, shape.member)]
    unknown = [name for name in value if name not in shape.members]
    known = [name for name in value if name in shape.members]
    return unknown + [each for name in known for each in unknown_members(value[name], shape.members[name])]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/2015-03-31/functions/nobody", b""),
        (f"/2015-03-31/functions/{NAME}/invocations", b"no json"),
        (f"/2015-03-31/functions/{NAME}:live/invocations?Qualifier=1", b"{}"),
        (f"/2019-09-30/functions/{NAME}/provisioned-concurrency?Qualifier=live", b""),
    ],
)
async def test_errors_have_the_shapes_of_the_model(
    client: Any, emulator: Emulator, path: str, body: bytes
) -> None:
    """An error's header names a shape of the model, and its body has that shape's members, spelt alike."""
    async with httpx.AsyncClient(base_url=emulator.url, trust_env=False) as web:
        response = await web.request("POST" if body else "GET", path, content=body)
    shape = client.meta.service_model.shape_for(response.headers["x-amzn-errortype"])
    assert response.json().keys() == {name for name in shape.members if name.lower() in ("type", "message")}
    assert response.status_code == shape.metadata["error"]["httpStatusCode"]
    assert response.headers["x-amzn-requestid"]


async def test_aws_cli(emulator: Emulator, aws_environ: dict[str, str], tmp_path: Path) -> None:
    """The AWS CLI invokes a function and provisions concurrency, with --endpoint-url and nothing else."""

    def aws(*arguments: str) -> Any:
        done = subprocess.run(
            [AWS, "lambda", *arguments, "--endpoint-url", emulator.url],
            env={**aws_environ, "PATH": "/usr/bin:/bin", "AWS_MAX_ATTEMPTS": "1"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None

    payload, out = tmp_path / "in.json", tmp_path / "out.json"
    payload.write_text('{"do": "echo"}')
    invoked = await asyncio.to_thread(
        aws, "invoke", "--function-name", f"{NAME}:live", "--payload", f"fileb://{payload}", str(out)
    )
    assert invoked == {"StatusCode": 200, "ExecutedVersion": "1"}
    assert json.loads(out.read_text())["event"] == {"do": "echo"}
    put = await asyncio.to_thread(
        aws, "put-provisioned-concurrency-config", "--function-name", NAME, "--qualifier", "live",
        "--provisioned-concurrent-executions", "1",
    )  # fmt: skip
    assert put["Status"] == "IN_PROGRESS"
    listed = await asyncio.to_thread(aws, "list-functions")
    assert [each["FunctionName"] for each in listed["Functions"]] == [NAME]


async def test_http_api_beside_it(emulator: Emulator) -> None:
    """Paths that are not the Lambda API's go to the HTTP API on the same port."""
    async with httpx.AsyncClient(base_url=emulator.url, timeout=PATIENCE_S, trust_env=False) as web:
        response = await web.get("/2015-03-31/other")
    assert response.json()["event"]["rawPath"] == "/2015-03-31/other"
