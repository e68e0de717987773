"""A cold start through AWS's own runtime client, which polls a Runtime API of one invocation."""

import asyncio
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from coldframe_bench.loader.samples import SampleFailed
from coldframe_local.emulator.lambda_service.environments.runtime_api import Invocation, RuntimeApi
from coldframe_local.emulator.lambda_service.settings import ACCOUNT_ID

_HANDLER = "coldframe_functions.predict.app.handler"
_LIMIT_S = 60.0


class _OneInvocation:
    """Hands out one event and keeps what comes back, with the time of both."""

    def __init__(self, event: bytes) -> None:
        self.api = RuntimeApi(self)
        self.ready_ns = 0
        self.done: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()
        self._event = event

    def polled(self) -> None:
        if self.ready_ns:
            return  # the invocation is over, and no other comes
        self.ready_ns = time.monotonic_ns()
        deadline_ms = int((time.time() + _LIMIT_S) * 1e3)
        arn = f"arn:aws:lambda:us-east-1:{ACCOUNT_ID}:function:bench"
        self.api.offer(Invocation("bench", self._event, deadline_ms, arn, "Root=1-0-0"))

    def loaded(self) -> None:
        self.api.restore()

    def restore_failed(self, error_type: str, payload: bytes) -> None:
        self.done.set_exception(SampleFailed(f"The restore failed: {error_type}"))

    def responded(self, request_id: str, payload: bytes) -> bool:
        self.done.set_result((time.monotonic_ns(), payload))
        return True

    def failed(self, request_id: str, error_type: str, payload: bytes) -> bool:
        self.done.set_exception(SampleFailed(f"The function failed: {error_type}"))
        return True

    def init_failed(self, error_type: str, payload: bytes) -> None:
        self.done.set_exception(SampleFailed(f"The init phase failed: {error_type}"))


async def take_through_client(
    event: bytes, environ: Mapping[str, str], root: Path
) -> tuple[float, float, bytes]:
    """Milliseconds from spawn to the first poll (init), from there to the answer, and the answer."""
    listener = _OneInvocation(event)
    address = await listener.api.open()
    called_ns = time.monotonic_ns()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "awslambdaric", _HANDLER,
        cwd=root, env={**environ, "AWS_LAMBDA_RUNTIME_API": address},
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        answered_ns, payload = await asyncio.wait_for(listener.done, _LIMIT_S)
    finally:
        process.kill()
        await process.wait()
        listener.api.close()
    return (listener.ready_ns - called_ns) / 1e6, (answered_ns - listener.ready_ns) / 1e6, payload
