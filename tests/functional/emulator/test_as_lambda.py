"""What a caller of the Lambda API sees, and a function, is what Lambda shows them."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.options import EmulatorOptions, one_function
from tests.support.emulation import HERE, PATIENCE_S, FakeClock, function, running_pids, until

pytestmark = pytest.mark.anyio

NAME = "coldframe-predict"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def emulator(lines: list[str], tmp_path: Path, clock: FakeClock) -> AsyncIterator[Emulator]:
    options = EmulatorOptions(
        one_function("lambda_handlers.told", HERE, memory_mb=512, timeout_s=20.0),
        port=0,
        log=lines.append,
        max_environments=2,
        environ={"GATE": str(tmp_path)},
    )
    async with Emulator(options, clock=clock) as running:
        yield running


@pytest.fixture
def client(emulator: Emulator, aws_environ: dict[str, str]) -> Iterator[Any]:
    """boto3's client, without retries."""
    config = Config(retries={"total_max_attempts": 1}, read_timeout=PATIENCE_S)
    made = boto3.client("lambda", endpoint_url=emulator.url, config=config)
    yield made
    made.close()


async def called(operation: Callable[..., Any], **arguments: Any) -> Any:
    """A call of boto3, which blocks, beside the emulator's event loop."""
    return await asyncio.to_thread(operation, **{"FunctionName": NAME, **arguments})


async def told(client: Any, do: str, **arguments: Any) -> Any:
    """What the function returns."""
    payload = json.dumps({"do": do})
    invoked = await called(client.invoke, Payload=payload, **arguments)
    return json.loads(invoked["Payload"].read())


@contextmanager
def refused(code: str) -> Iterator[dict[str, Any]]:
    """The call ends in this error; what AWS says of it."""
    said: dict[str, Any] = {}
    with pytest.raises(ClientError) as caught:
        yield said
    said |= caught.value.response
    assert said["Error"]["Code"] == code


# Ends.


async def test_result_over_six_megabytes_is_told_in_lambda_s_words(client: Any, lines: list[str]) -> None:
    """The payload is Lambda's error object; REPORT names the end of the runtime client, which cannot go on.

    Payload: https://zaccharles.medium.com/deep-dive-lambdas-response-payload-size-limit-8aedba9530ed;
    REPORT: https://github.com/DataBiosphere/azul/issues/7466 (2026-09-17). Read 2026-11-21.
    """
    answer = await called(client.invoke, Payload=b'{"do": "oversized"}')
    assert (answer["StatusCode"], answer["FunctionError"]) == (200, "Unhandled")
    assert json.loads(answer["Payload"].read()) == {
        "errorMessage": "Response payload size exceeded maximum allowed payload size (6291556 bytes).",
        "errorType": "Function.ResponseSizeTooLarge",
    }
    [report] = [line for line in lines if line.startswith("REPORT ")]
    assert report.endswith("\tStatus: error\tError Type: Runtime.ExitError")


async def test_process_that_leaves_with_status_0_gives_no_reason(client: Any, lines: list[str]) -> None:
    """`sys.exit(0)` is a crash, and Lambda's words for it have no status.

    Source: https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html, read 2026-11-21.
    """
    error = await told(client, "leave quietly")
    assert error["errorType"] == "Runtime.ExitError"
    assert re.fullmatch(
        r"RequestId: \S+ Error: Runtime exited without providing a reason", error["errorMessage"]
    )
    assert error["errorMessage"] in lines


# What a function is given.


async def test_client_context_reaches_the_function(client: Any) -> None:
    """What the caller says of itself is in `context.client_context`, beyond ASCII too; nothing is None."""
    context = {"custom": {"who": "ä漢"}, "env": {"locale": "de"}, "client": {}}
    encoded = base64.b64encode(json.dumps(context).encode()).decode()
    given = await told(client, "context", ClientContext=encoded)
    assert given == {"custom": {"who": "ä漢"}, "env": {"locale": "de"}}
    assert await told(client, "context") is None


@pytest.mark.parametrize(
    "context", ["%%%", base64.b64encode(b"no json").decode(), base64.b64encode(b"1").decode()]
)
async def test_client_context_that_is_no_object_is_refused(client: Any, context: str) -> None:
    """Before anything runs, and in Lambda's words."""
    with refused("InvalidRequestContentException") as said:
        await called(client.invoke, ClientContext=context)
    assert said["Error"]["Message"] == "Client context must be a valid Base64-encoded JSON object."


async def test_trace_id_is_that_of_the_invocation(client: Any) -> None:
    """Each invocation has a trace of its own, in X-Ray's form, and the function finds it."""
    traces = [await told(client, "trace") for _ in range(2)]
    pattern = r"Root=1-[0-9a-f]{8}-[0-9a-f]{24};Parent=[0-9a-f]{16};Sampled=0"
    assert all(re.fullmatch(pattern, trace) for trace in traces)
    assert traces[0] != traces[1]


@pytest.mark.parametrize("given", [{"TenantId": "a"}, {"DurableExecutionName": "a"}])
async def test_what_cannot_be_imitated_is_refused_by_name(client: Any, given: dict[str, str]) -> None:
    """An answer that ignores it would be another one than AWS's."""
    with refused("InvalidParameterValueException") as said:
        await called(client.invoke, **given)
    assert next(iter(given)) in said["Error"]["Message"]


# Versions and aliases.


async def test_nothing_is_published_unless_somebody_asks(client: Any, emulator: Emulator) -> None:
    """A function has `$LATEST`; a version and an alias once they are made, and the alias can go again."""
    emulator.service.create_function(function(name="plain"))
    plain = {"FunctionName": "plain"}
    versions = await called(client.list_versions_by_function, **plain)
    assert [version["Version"] for version in versions["Versions"]] == ["$LATEST"]
    assert (await called(client.list_aliases, **plain))["Aliases"] == []
    with refused("ResourceNotFoundException"):
        await called(client.create_alias, Name="blue", FunctionVersion="1", **plain)
    assert (await called(client.publish_version, **plain))["Version"] == "1"
    made = await called(client.create_alias, Name="blue", FunctionVersion="1", **plain)
    assert (made["Name"], made["FunctionVersion"]) == ("blue", "1")
    with refused("ResourceConflictException"):
        await called(client.create_alias, Name="blue", FunctionVersion="1", **plain)
    await called(client.delete_alias, Name="blue", **plain)
    assert (await called(client.list_aliases, **plain))["Aliases"] == []


async def test_version_of_what_has_not_changed_is_the_one_there_is(client: Any, emulator: Emulator) -> None:
    """PublishVersion makes a new one only after a change.

    Source: https://docs.aws.amazon.com/lambda/latest/api/API_PublishVersion.html, read 2026-11-21.
    """
    published = [(await called(client.publish_version))["Version"] for _ in range(2)]
    emulator.service.recycle(NAME)
    changed = [(await called(client.publish_version))["Version"] for _ in range(2)]
    assert (published, changed) == (["1", "1"], ["2", "2"])


# Concurrency.


async def test_function_has_no_reservation_that_nobody_made(client: Any, tmp_path: Path) -> None:
    """The account has everything left; what this machine bears throttles as a small account does."""
    assert "ReservedConcurrentExecutions" not in await called(client.get_function_concurrency)
    account = await asyncio.to_thread(client.get_account_settings)
    assert account["AccountLimit"]["UnreservedConcurrentExecutions"] == 1000
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(told(client, "gate"))
        await until(lambda: len(running_pids(tmp_path)) == 2)
        with refused("TooManyRequestsException") as said:
            await told(client, "echo")
        (tmp_path / "open").touch()
    assert said["Reason"] == "ConcurrentInvocationLimitExceeded"


async def test_reservation_of_one_admits_ten_requests_a_second(client: Any, clock: FakeClock) -> None:
    """However quick the function is: the eleventh in a second is throttled, by AWS's name for it."""
    await called(client.put_function_concurrency, ReservedConcurrentExecutions=1)
    for _ in range(10):
        await told(client, "echo")
    with refused("TooManyRequestsException") as said:
        await told(client, "echo")
    assert said["Reason"] == "ReservedFunctionInvocationRateLimitExceeded"
    clock.now_s += 1
    assert (await told(client, "echo"))["event"] == {"do": "echo"}


async def test_runtime_is_the_template_s(client: Any, emulator: Emulator) -> None:
    """GetFunction says what the template says, whichever interpreter runs it here."""
    emulator.service.create_function(function(name="older", runtime="python3.9"))
    configuration = await called(client.get_function_configuration, FunctionName="older")
    assert (configuration["Runtime"], configuration["PackageType"]) == ("python3.9", "Zip")
