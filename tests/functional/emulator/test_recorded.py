"""The Lambda API beside the recorded answers of AWS's runtime interface emulator.

`python -m tests.recorded.record` makes the records anew.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.options import EmulatorOptions, one_function
from tests.recorded.cases import CASES, TIMEOUT_S, comparable
from tests.recorded.record import RECORDED
from tests.support.emulation import HERE

pytestmark = pytest.mark.anyio

ANSWERS: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text())["answers"]
INVOCATIONS = "/2015-03-31/functions/coldframe-predict/invocations"


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    options = EmulatorOptions(
        one_function("handlers.told", HERE, timeout_s=TIMEOUT_S), port=0, log=lambda line: None
    )
    async with (
        Emulator(options) as emulator,
        httpx.AsyncClient(base_url=emulator.url, timeout=60.0, trust_env=False) as web,
    ):
        yield web


def test_every_case_is_recorded() -> None:
    """The records are those of the present cases."""
    assert set(ANSWERS) == set(CASES)


@pytest.mark.parametrize("case", ["result", "exception", "unserializable", "crash"])
async def test_same_body(client: httpx.AsyncClient, case: str) -> None:
    """Results and errors of a function have the same body, to the byte."""
    response = await client.post(INVOCATIONS, content=CASES[case])
    assert comparable(response.text) == ANSWERS[case]["body"]


@pytest.mark.parametrize("case", sorted(CASES))
async def test_differences_are_lambda_s(client: httpx.AsyncClient, case: str) -> None:
    """Where the runtime interface emulator is unlike Lambda, ours is like Lambda: these, and no others.

    Status and headers: https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html (read 2026-11).
    """
    response = await client.post(INVOCATIONS, content=CASES[case])
    recorded = ANSWERS[case]
    # JSON by its right name; and what tells a function's error from its result.
    assert recorded["headers"]["content-type"] == "text/plain; charset=utf-8"
    assert response.headers["content-type"] == "application/json"
    assert "x-amz-function-error" not in recorded["headers"]
    failed = case in ("exception", "unserializable", "crash", "timeout")
    assert response.headers.get("x-amz-function-error") == ("Unhandled" if failed else None)
    # A crash is an error of the function, not of the service; an event that is not JSON never reaches it.
    assert (recorded["status"], response.status_code) == {"crash": (502, 200), "no json": (200, 400)}.get(
        case, (200, 200)
    )


async def test_timeout_is_an_error_object(client: httpx.AsyncClient) -> None:
    """The runtime interface emulator says it in plain text, Lambda as an error object."""
    response = await client.post(INVOCATIONS, content=CASES["timeout"])
    sentence = ANSWERS["timeout"]["body"]
    assert sentence == "Task timed out after 1.00 seconds"
    assert response.json()["errorMessage"].endswith(sentence)
