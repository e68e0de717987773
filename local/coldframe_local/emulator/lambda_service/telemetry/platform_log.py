"""Lambda's own lines in a function's log, in its two formats. Pure, except for the time of day.

Text: https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html and
https://docs.aws.amazon.com/lambda/latest/dg/python-logging.html. JSON:
https://docs.aws.amazon.com/lambda/latest/dg/telemetry-schema-reference.html and
https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html. Read 2026-11-21.
SnapStart: https://docs.aws.amazon.com/lambda/latest/dg/snapstart-monitoring.html, read 2026-11-22.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from typing import Protocol

import msgspec

from coldframe_local.emulator.lambda_service.lambda_types import Invoked
from coldframe_local.emulator.lambda_service.report import InvocationStatus, timestamp
from coldframe_local.emulator.lambda_service.settings import FunctionSettings, LogFormat

_MB = 1024 * 1024

# Lambda writes python:3.13.v43 here, and the ARN of that build: this is not a build of AWS's.
_VERSION = f"python:{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}-local"
_BUILD = hashlib.sha256(sys.version.encode()).hexdigest()


class PlatformLog(Protocol):
    """Lines of one environment's log."""

    def init_start(self) -> Iterator[str]:
        """An init phase begins. Nothing for an image, whose runtime Lambda does not know."""

    def init_report(
        self, init_ms: float, phase: str, status: str = "", error_type: str = ""
    ) -> Iterator[str]:
        """An init phase is over. phase: "init", or "invoke" when it was run again inside an invocation.

        Lambda writes it when an init phase fails, and always for provisioned concurrency.
        """

    def restore_start(self) -> Iterator[str]:
        """A snapshot begins to be restored."""

    def restore_report(self, restore_ms: float, status: str = "", error_type: str = "") -> Iterator[str]:
        """The restore is over, the function's hooks included. status: empty when it went well."""

    def start(self, request_id: str, arn: str) -> Iterator[str]:
        """An invocation begins. arn: as the caller named the function."""

    def exited(self, message: str) -> Iterator[str]:
        """The runtime client is gone."""

    def timed_out(self, request_id: str, message: str) -> Iterator[str]:
        """The invocation took too long."""

    def end(self, invoked: Invoked, error_type: str) -> Iterator[str]:
        """An invocation is over. error_type: what REPORT names as its end, when it was an error."""


def platform_log(function: FunctionSettings, log_stream: str, initialization_type: str) -> PlatformLog:
    """The log of an environment, in the format of its function."""
    if function.logging.log_format is LogFormat.JSON:
        return _JsonLog(function, log_stream, initialization_type)
    return _TextLog(function)


def runtime_version_arn(function: FunctionSettings) -> str:
    """Placeholder for AWS's name of the runtime's build."""
    return f"arn:aws:lambda:{function.region}::runtime:{_BUILD}"


class _TextLog:
    """START, END and REPORT, fields separated by tabs."""

    def __init__(self, function: FunctionSettings) -> None:
        self._function = function

    def init_start(self) -> Iterator[str]:
        yield from self._start_of("INIT_START")

    def _start_of(self, what: str) -> Iterator[str]:
        if self._function.runtime is not None:
            arn = runtime_version_arn(self._function)
            yield f"{what} Runtime Version: {_VERSION}\tRuntime Version ARN: {arn}"

    def restore_start(self) -> Iterator[str]:
        yield from self._start_of("RESTORE_START")

    def restore_report(self, restore_ms: float, status: str = "", error_type: str = "") -> Iterator[str]:
        fields = [f"RESTORE_REPORT Restore Duration: {restore_ms:.2f} ms"]
        fields += [f"Status: {status}"] if status else []
        fields += [f"Error Type: {error_type}"] if error_type else []
        yield "\t".join(fields)

    def init_report(
        self, init_ms: float, phase: str, status: str = "", error_type: str = ""
    ) -> Iterator[str]:
        fields = [f"INIT_REPORT Init Duration: {init_ms:.2f} ms", f"Phase: {phase}"]
        if status:
            fields.append(f"Status: {status}")
        if error_type:
            fields.append(f"Error Type: {error_type}")
        yield "\t".join(fields)

    def start(self, request_id: str, arn: str) -> Iterator[str]:
        yield f"START RequestId: {request_id} Version: {self._function.version}"

    def exited(self, message: str) -> Iterator[str]:
        yield message
        yield "Runtime.ExitError"

    def timed_out(self, request_id: str, message: str) -> Iterator[str]:
        yield f"{timestamp()} {request_id} {message}"

    def end(self, invoked: Invoked, error_type: str) -> Iterator[str]:
        yield f"END RequestId: {invoked.request_id}"
        fields = [
            f"REPORT RequestId: {invoked.request_id}",
            f"Duration: {invoked.duration_ms:.2f} ms",
            f"Billed Duration: {invoked.billed_ms} ms",
            f"Memory Size: {invoked.memory_size_mb} MB",
            f"Max Memory Used: {invoked.max_memory_mb} MB",
        ]
        if invoked.init_ms is not None:
            fields.append(f"Init Duration: {invoked.init_ms:.2f} ms")
        if invoked.restore_ms is not None:
            fields.append(f"Restore Duration: {invoked.restore_ms:.2f} ms")
            fields.append(f"Billed Restore Duration: {invoked.billed_restore_ms} ms")
        if invoked.outcome.status is InvocationStatus.ERROR:
            fields.append(f"Status: error\tError Type: {error_type}")
        elif invoked.outcome.status is InvocationStatus.TIMEOUT:
            fields.append("Status: timeout")
        yield "\t".join(fields)


class _JsonLog:
    """Events of the Telemetry API, one JSON object a line: those of the levels INFO and WARN.

    A crash and a timeout have no line of their own: the report's status tells of them.
    """

    def __init__(self, function: FunctionSettings, log_stream: str, initialization_type: str) -> None:
        self._function = function
        self._stream = log_stream
        self._type = initialization_type
        self._infos = function.logging.system_level != "WARN"

    def init_start(self) -> Iterator[str]:
        yield from self._start_of("platform.initStart", initializationType=self._type, phase="init")

    def _start_of(self, kind: str, **more: object) -> Iterator[str]:
        function = self._function
        if function.runtime is not None and self._infos:
            yield _event(
                kind,
                **more,
                runtimeVersion=_VERSION,
                runtimeVersionArn=runtime_version_arn(function),
                functionName=function.name,
                functionVersion=function.version,
                instanceId=self._stream,
                instanceMaxMemory=function.memory_mb * _MB,
            )

    def restore_start(self) -> Iterator[str]:
        yield from self._start_of("platform.restoreStart")

    def restore_report(self, restore_ms: float, status: str = "", error_type: str = "") -> Iterator[str]:
        if status or self._infos:
            yield _event(
                "platform.restoreReport",
                status=status or "success",
                **({"errorType": error_type} if error_type else {}),
                metrics={"durationMs": round(restore_ms, 3)},
            )

    def init_report(
        self, init_ms: float, phase: str, status: str = "", error_type: str = ""
    ) -> Iterator[str]:
        if status or self._infos:
            yield _event(
                "platform.initReport",
                initializationType=self._type,
                phase=phase,
                status=status or "success",
                **({"errorType": error_type} if error_type else {}),
                metrics={"durationMs": round(init_ms, 3)},
            )

    def start(self, request_id: str, arn: str) -> Iterator[str]:
        if self._infos:
            version = self._function.version
            yield _event("platform.start", requestId=request_id, functionArn=arn, version=version)

    def exited(self, message: str) -> Iterator[str]:
        yield from ()

    def timed_out(self, request_id: str, message: str) -> Iterator[str]:
        yield from ()

    def end(self, invoked: Invoked, error_type: str) -> Iterator[str]:
        status = invoked.outcome.status
        if status is InvocationStatus.SUCCESS and not self._infos:
            return
        metrics: dict[str, float] = {
            "durationMs": round(invoked.duration_ms, 3),
            "billedDurationMs": invoked.billed_ms,
            "memorySizeMB": invoked.memory_size_mb,
            "maxMemoryUsedMB": invoked.max_memory_mb,
        }
        if invoked.init_ms is not None:
            metrics["initDurationMs"] = round(invoked.init_ms, 3)
        if invoked.restore_ms is not None:
            metrics["restoreDurationMs"] = round(invoked.restore_ms, 3)
            metrics["billedRestoreDurationMs"] = invoked.billed_restore_ms
        error = {"errorType": error_type} if error_type and status is not InvocationStatus.TIMEOUT else {}
        yield _event("platform.report", requestId=invoked.request_id, metrics=metrics, status=status, **error)


def _event(kind: str, **record: object) -> str:
    return msgspec.json.encode({"time": timestamp(), "type": kind, "record": record}).decode()
