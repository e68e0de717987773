"""The log lines by which Lambda tells of an invocation, and what it bills for it. Pure.

Source: https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html and
https://docs.aws.amazon.com/lambda/latest/dg/python-logging.html, read 2026-11.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from enum import StrEnum

TAIL_BYTES = 4096  # what the Lambda API returns of a log (LogType=Tail)


class InvocationStatus(StrEnum):
    """How an invocation ended, in the words of Lambda's Telemetry API.

    failure: the function raised; its environment lives on.
    error: the environment is gone, or its result was of no use.
    """

    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an invocation. payload: the function's result, or its error object, as JSON."""

    status: InvocationStatus
    payload: bytes = b""
    error_type: str = ""


class LogTail:
    """The last bytes of an invocation's lines; takes no more memory however much is written."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, line: str) -> None:
        """Appends a line."""
        self._bytes += line.encode() + b"\n"
        if len(self._bytes) > 2 * TAIL_BYTES:
            del self._bytes[:-TAIL_BYTES]

    def __bytes__(self) -> bytes:
        return bytes(self._bytes[-TAIL_BYTES:])


@dataclass(frozen=True, slots=True)
class Report:
    """What the REPORT line says.

    init_ms: of the init phase that this invocation waited for, or None. log_tail: its lines.
    """

    outcome: Outcome
    request_id: str
    duration_ms: float
    init_ms: float | None
    memory_size_mb: int
    max_memory_mb: int
    log_tail: LogTail

    @property
    def billed_ms(self) -> int:
        """The duration, with the init phase, rounded up to a whole millisecond."""
        return math.ceil(self.duration_ms + (self.init_ms or 0.0))

    def __str__(self) -> str:
        fields = [
            f"REPORT RequestId: {self.request_id}",
            f"Duration: {self.duration_ms:.2f} ms",
            f"Billed Duration: {self.billed_ms} ms",
            f"Memory Size: {self.memory_size_mb} MB",
            f"Max Memory Used: {self.max_memory_mb} MB",
        ]
        if self.init_ms is not None:
            fields.append(f"Init Duration: {self.init_ms:.2f} ms")
        if self.outcome.status is InvocationStatus.ERROR:
            fields.append(f"Status: error\tError Type: {self.outcome.error_type}")
        elif self.outcome.status is InvocationStatus.TIMEOUT:
            fields.append("Status: timeout")
        return "\t".join(fields)


def init_report(init_ms: float, phase: str, status: str = "", error_type: str = "") -> str:
    """An INIT_REPORT line. phase: "init", or "invoke" for an init phase run again inside an invocation.

    Lambda writes it when an init phase fails, and always for provisioned concurrency.
    """
    fields = [f"INIT_REPORT Init Duration: {init_ms:.2f} ms", f"Phase: {phase}"]
    if status:
        fields.append(f"Status: {status}")
    if error_type:
        fields.append(f"Error Type: {error_type}")
    return "\t".join(fields)


def timestamp() -> str:
    """Now, as Lambda writes it before a line of its own."""
    now = time.time()
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03d}Z"
