"""The one invocation that an environment works on, from its event to its end."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from dataclasses import dataclass

from coldframe_local.emulator.lambda_service.environments.runtime_api import Invocation
from coldframe_local.emulator.lambda_service.lambda_types import Invoked
from coldframe_local.emulator.lambda_service.report import LogTail, Outcome


@dataclass(frozen=True, slots=True)
class Call:
    """Arguments of an invocation.

    event: JSON. arn: the function as the caller named it, with the qualifier. client_context: JSON, or "".
    """

    event: bytes
    arn: str
    client_context: str = ""


class Running:
    """An invocation on its way.

    handed_out: the runtime client has it. Not so while the init phase is run again inside the invocation:
    then its time runs, and the function still loads.
    outcome: what the function answered; the invocation ends when its client asks for the next one.
    """

    __slots__ = ("call", "done", "handed_out", "outcome", "request_id", "started_s", "tail", "timer")

    def __init__(self, call: Call, done: asyncio.Future[Invoked]) -> None:
        self.request_id = str(uuid.uuid4())
        self.call = call
        self.handed_out = False
        self.done = done
        self.outcome: Outcome | None = None
        self.started_s = time.perf_counter()
        self.timer: asyncio.TimerHandle | None = None
        self.tail = LogTail()

    def invocation(self, timeout_s: float) -> Invocation:
        """Invocation for the runtime client. timeout_s: of the whole invocation."""
        now = time.time()
        left_s = timeout_s - (time.perf_counter() - self.started_s)
        return Invocation(
            request_id=self.request_id,
            event=self.call.event,
            deadline_ms=int((now + left_s) * 1000),
            invoked_function_arn=self.call.arn,
            trace_id=f"Root=1-{int(now):08x}-{os.urandom(12).hex()};Parent={os.urandom(8).hex()};Sampled=0",
            client_context=self.call.client_context,
        )

    def duration_ms(self) -> float:
        """So far."""
        return (time.perf_counter() - self.started_s) * 1000

    def end(self, invoked: Invoked) -> None:
        """Tells the caller, unless the caller has left."""
        if self.timer is not None:
            self.timer.cancel()
        if not self.done.done():
            self.done.set_result(invoked)
