"""`/_experiment`: the experiment inside a function, as `coldframe experiment status --json` reports it."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import msgspec

from coldframe_local.emulator.gateway.http import HttpRequest, HttpResponse, problem
from coldframe_local.emulator.lambda_service.lambda_types import ResourceNotFoundException
from coldframe_local.paths import ROOT, python_path

if TYPE_CHECKING:
    from coldframe_local.emulator.lambda_service.account.service import LambdaService
    from coldframe_local.emulator.lambda_service.settings import FunctionSettings

PATH = "/_experiment"

_SETTING = "COLDFRAME_EXPERIMENTS"
_READER = "coldframe_local.emulator.console.experiment_reader"
_PATIENCE_S = 10.0
_JSON = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
_WITHOUT_STORE = msgspec.json.encode({"has_store": False})


class ExperimentHandler:
    """Handler of requests for `PATH`. One reading at a time; nothing is ever changed."""

    max_body_bytes = 0

    def __init__(self, service: LambdaService) -> None:
        self._service = service
        self._one_at_a_time = asyncio.Lock()

    def too_large(self) -> HttpResponse:
        """The answer to a request with a body."""
        return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Expected no body. Send none.")

    async def respond(self, request: HttpRequest) -> HttpResponse:
        """The reading of the function that the query names."""
        if request.method != "GET":
            return problem(HTTPStatus.METHOD_NOT_ALLOWED, "Ask with GET.", (b"allow", b"GET"))
        name = parse_qs(request.query).get("function", [""])[0]
        try:
            settings = self._service.functions.get(name)
        except ResourceNotFoundException as exc:
            return problem(HTTPStatus.NOT_FOUND, str(exc))
        if not (place := settings.environ.get(_SETTING, "")):
            return HttpResponse(HTTPStatus.OK, list(_JSON), _WITHOUT_STORE)
        if "/" in place:  # a folder; the function's own working folder is where relative paths begin
            place = str(settings.task_root / place)
        async with self._one_at_a_time:
            body = await _read(place, _environ(settings))
        return HttpResponse(HTTPStatus.OK, list(_JSON), body)


async def _read(place: str, environ: Mapping[str, str]) -> bytes:
    """The reading by a process of its own, as JSON."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        _READER,
        place,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=DEVNULL,
        cwd=ROOT,
        env=environ,
        start_new_session=True,  # a terminal's Ctrl-C is for the emulator
    )
    try:
        async with asyncio.timeout(_PATIENCE_S):
            output, _ = await process.communicate()
    except TimeoutError:
        return _unreadable(f"The store has not answered within {_PATIENCE_S:g} s")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return output or _unreadable("The reading has failed")


def _unreadable(reason: str) -> bytes:
    return msgspec.json.encode({"has_store": True, "problem": f"{reason}. Check {_SETTING}."})


def _environ(settings: FunctionSettings) -> dict[str, str]:
    """Variables of the reader: it reaches the stores that the function reaches, with its credentials."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    functions = {name: value for name, value in settings.environ.items() if name.startswith("AWS_")}
    region = {"AWS_DEFAULT_REGION": settings.region, "AWS_EC2_METADATA_DISABLED": "true"}
    return own | functions | region | {"PYTHONPATH": python_path()}
