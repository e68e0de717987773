"""How an invocation ends, and the end of its log. Pure.

Source: https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html and
https://docs.aws.amazon.com/lambda/latest/dg/python-logging.html, read 2026-11.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum

import msgspec

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

    @classmethod
    def error(cls, error_type: str, message: str) -> Outcome:
        """An end that Lambda, and not the function, tells of."""
        payload = msgspec.json.encode({"errorType": error_type, "errorMessage": message})
        return cls(InvocationStatus.ERROR, payload, error_type)


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


def timestamp() -> str:
    """Now, as Lambda writes it: UTC, ISO 8601, with milliseconds."""
    now = time.time()
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03d}Z"
