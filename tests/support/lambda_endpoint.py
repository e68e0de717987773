"""Endpoint of boto3 for real execution environments, and for the other calls of a deployment.

It serves Invoke and GetAlias of the Lambda API over the emulated service, gets and deletes a level of
provisioned concurrency, and keeps what CodeDeploy is told.
"""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from coldframe.capacity.admission import Throttle
from coldframe_local.emulator.lambda_service.account.service import LambdaService
from coldframe_local.emulator.lambda_service.report import InvocationStatus
from coldframe_local.emulator.lambda_service.settings import FunctionSettings
from tests.conftest import ROOT

VERSION = "7"
_FUNCTION = "predict"
_INVOKE = re.compile(r"/2015-03-31/functions/([^/]+)/invocations")
_PROVISIONED = re.compile(r"/2019-09-30/functions/([^/]+)/provisioned-concurrency\?Qualifier=live")
_ALIAS = re.compile(r"/2015-03-31/functions/([^/]+)/aliases/live")


class LambdaEndpoint:
    """url: for boto3's `endpoint_url`. statuses: what CodeDeploy was told. invoked: names, as they came.

    provisioned: the level of the alias.
    """

    def __init__(self, service: LambdaService, loop: asyncio.AbstractEventLoop) -> None:
        self.url = ""
        self.statuses: list[dict[str, str]] = []
        self.invoked: list[str] = []
        self.provisioned = 0
        self._service = service
        self._loop = loop

    def environments(self) -> int:
        """Execution environments that are alive."""
        return len(self._service.snapshot().environments)

    def answer(self, method: str, path: str, target: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body for a request."""
        if _PROVISIONED.fullmatch(path):
            return self._delete_provisioned() if method == "DELETE" else self._get_provisioned()
        if found := _INVOKE.fullmatch(path):
            self.invoked.append(found[1])
            return self._invoke(body)
        if found := _ALIAS.fullmatch(path):
            return 200, {}, json.dumps({"Name": "live", "FunctionVersion": VERSION}).encode()
        if target == "CodeDeploy_20141006.PutLifecycleEventHookExecutionStatus":
            self.statuses.append(json.loads(body))
            return 200, {}, b"{}"
        return 404, {}, b"{}"

    def _get_provisioned(self) -> tuple[int, dict[str, str], bytes]:
        if not self.provisioned:
            error = {"x-amzn-errortype": "ProvisionedConcurrencyConfigNotFoundException"}
            return 404, error, b'{"message": "No Provisioned Concurrency Config found for this function"}'
        level = {"RequestedProvisionedConcurrentExecutions": self.provisioned, "Status": "READY"}
        return 200, {}, json.dumps(level).encode()

    def _delete_provisioned(self) -> tuple[int, dict[str, str], bytes]:
        self.provisioned = 0
        return 204, {}, b""

    def _invoke(self, event: bytes) -> tuple[int, dict[str, str], bytes]:
        invoking = self._service.invoke(_FUNCTION, None, event)
        invoked = asyncio.run_coroutine_threadsafe(invoking, self._loop).result()
        if isinstance(invoked, Throttle):
            error = {"x-amzn-errortype": "TooManyRequestsException"}
            return 429, error, json.dumps({"Reason": invoked.reason, "message": "Rate Exceeded."}).encode()
        outcome = invoked.outcome
        if outcome.status is InvocationStatus.SUCCESS:
            return 200, {}, outcome.payload
        payload = outcome.payload or json.dumps({"errorType": outcome.error_type}).encode()
        return 200, {"x-amz-function-error": "Unhandled"}, payload


@contextmanager
def lambda_endpoint(
    bundle: Path, reserved_concurrency: int | None = None, **environ: str
) -> Iterator[LambdaEndpoint]:
    """The predict function with the real model, one environment per invocation at a time."""
    settings = FunctionSettings(
        handler="coldframe_functions.predict.app.handler",
        task_root=ROOT,
        memory_mb=1769,
        timeout_s=29,
        environ={"COLDFRAME_MODEL_DIR": str(bundle), **environ},
        name=_FUNCTION,
    )
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def make_service() -> LambdaService:
        service = LambdaService(lambda line: None)
        service.create_function(settings)
        if reserved_concurrency is not None:
            service.concurrency.put_reserved(_FUNCTION, reserved_concurrency)
        return service

    service = asyncio.run_coroutine_threadsafe(make_service(), loop).result()
    endpoint = LambdaEndpoint(service, loop)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(endpoint))
    endpoint.url = f"http://127.0.0.1:{server.server_address[1]}"
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
        asyncio.run_coroutine_threadsafe(service.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _handler(endpoint: LambdaEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _reply(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            target = self.headers.get("X-Amz-Target", "")
            status, headers, content = endpoint.answer(self.command, self.path, target, body)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = _reply  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Quiet."""

    return Handler
