"""Lambda's own log lines, in both formats, and what of an invocation is billed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from coldframe_local.emulator.lambda_service.lambda_types import Invoked
from coldframe_local.emulator.lambda_service.report import InvocationStatus, Outcome
from coldframe_local.emulator.lambda_service.settings import FunctionSettings, LogFormat, LoggingConfig
from coldframe_local.emulator.lambda_service.telemetry.platform_log import PlatformLog, platform_log

STREAM = "2026/11/21/[1]0"


def log(runtime: str | None = "python3.13", **logging: Any) -> PlatformLog:
    settings = FunctionSettings(
        "app.handler", Path(), 512, 29.0, name="f", version="1", runtime=runtime,
        logging=LoggingConfig(**logging),
    )  # fmt: skip
    return platform_log(settings, STREAM, "on-demand")


def json_log(**logging: Any) -> PlatformLog:
    return log(log_format=LogFormat.JSON, **logging)


def invoked(status: InvocationStatus = InvocationStatus.SUCCESS, init_ms: float | None = None) -> Invoked:
    return Invoked(
        Outcome(status), "id-1", duration_ms=12.345, init_ms=init_ms, memory_size_mb=512, max_memory_mb=99
    )


def report(ended: Invoked, error_type: str = "") -> str:
    end, line = log().end(ended, error_type)
    assert end == "END RequestId: id-1"
    return line


def events(lines: Any) -> list[dict[str, Any]]:
    """The type and record of each line, whose time is that of CloudWatch."""
    told = [json.loads(line) for line in lines]
    for event in told:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event.pop("time"))
    return told


def test_report_of_a_warm_invocation() -> None:
    """Durations with two decimals, whole milliseconds billed, memory in MB, separated by tabs."""
    assert report(invoked()) == (
        "REPORT RequestId: id-1\tDuration: 12.35 ms\tBilled Duration: 13 ms"
        "\tMemory Size: 512 MB\tMax Memory Used: 99 MB"
    )


def test_report_of_a_cold_invocation_bills_its_init() -> None:
    """The sum is rounded up, not its parts."""
    cold = invoked(init_ms=100.2)
    assert cold.billed_ms == 113
    assert report(cold).endswith("\tInit Duration: 100.20 ms")


def test_report_tells_how_it_ended() -> None:
    """An error with its type, a timeout without one, a function that raised not at all."""
    assert report(invoked(InvocationStatus.ERROR), "X").endswith("\tStatus: error\tError Type: X")
    assert report(invoked(InvocationStatus.TIMEOUT), "X").endswith("\tStatus: timeout")
    assert "Status" not in report(invoked(InvocationStatus.FAILURE), "X")


def test_init_report() -> None:
    """Phase, and only of a failure a status, and only of an error its type."""
    line = "INIT_REPORT Init Duration: 1.50 ms\tPhase: init"
    assert [*log().init_report(1.5, "init")] == [line]
    assert [*log().init_report(1.5, "init", "timeout")] == [f"{line}\tStatus: timeout"]
    assert [*log().init_report(1.5, "init", "error", "X")] == [f"{line}\tStatus: error\tError Type: X"]


def test_init_start_names_the_runtime() -> None:
    """Its version and the version's ARN; of an image Lambda knows neither, and says nothing."""
    [line] = log().init_start()
    assert re.fullmatch(
        r"INIT_START Runtime Version: python:3\.\d+\.\d+-local"
        r"\tRuntime Version ARN: arn:aws:lambda:us-east-1::runtime:[0-9a-f]{64}",
        line,
    )
    assert [*log(runtime=None).init_start()] == []


def test_json_lines_are_events_of_the_telemetry_api() -> None:
    """Start and report with the members that AWS's have; a report has its init, and its error, if any."""
    assert events(json_log().start("id-1", "arn:f:live")) == [
        {
            "type": "platform.start",
            "record": {"requestId": "id-1", "functionArn": "arn:f:live", "version": "1"},
        }
    ]
    metrics = {"durationMs": 12.345, "billedDurationMs": 13, "memorySizeMB": 512, "maxMemoryUsedMB": 99}
    assert events(json_log().end(invoked(), "")) == [
        {
            "type": "platform.report",
            "record": {"requestId": "id-1", "metrics": metrics, "status": "success"},
        }
    ]
    [failed] = events(json_log().end(invoked(InvocationStatus.ERROR, 1.0), "Runtime.ExitError"))
    assert failed["record"]["metrics"]["initDurationMs"] == 1.0
    assert (failed["record"]["status"], failed["record"]["errorType"]) == ("error", "Runtime.ExitError")
    [start] = events(json_log().init_start())
    assert start["record"].keys() == {
        "initializationType", "phase", "runtimeVersion", "runtimeVersionArn", "functionName",
        "functionVersion", "instanceId", "instanceMaxMemory",
    }  # fmt: skip
    [init] = events(json_log().init_report(1.5, "invoke", "error", "X"))
    assert init["record"] == {
        "initializationType": "on-demand", "phase": "invoke", "status": "error", "errorType": "X",
        "metrics": {"durationMs": 1.5},
    }  # fmt: skip


def test_json_has_no_lines_of_text() -> None:
    """A crash and a timeout are told by the report alone."""
    quiet = json_log()
    assert [*quiet.exited("Error: Runtime exited"), *quiet.timed_out("id-1", "Task timed out")] == []


@pytest.mark.parametrize(("status", "lines"), [("success", 0), ("failure", 1), ("timeout", 1)])
def test_system_level_warn_leaves_failures_only(status: str, lines: int) -> None:
    """WARN takes away what tells of nothing unusual."""
    warn = json_log(system_level="WARN")
    assert len([*warn.end(invoked(InvocationStatus(status)), "")]) == lines
    assert [*warn.init_start(), *warn.start("id-1", "arn"), *warn.init_report(1.0, "init")] == []
