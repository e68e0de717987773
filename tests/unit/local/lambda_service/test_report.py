"""Lambda's log lines, and what of an invocation is billed."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from local.lambda_service.report import (
    TAIL_BYTES,
    InvocationStatus,
    LogTail,
    Outcome,
    Report,
    init_report,
    timestamp,
)


def report(status: InvocationStatus = InvocationStatus.SUCCESS, init_ms: float | None = None) -> Report:
    outcome = Outcome(status, error_type="" if status is InvocationStatus.SUCCESS else "Some.Error")
    return Report(outcome, "id-1", 12.345, init_ms, 512, 99, LogTail())


def test_report_of_a_warm_invocation() -> None:
    """Durations with two decimals, whole milliseconds billed, memory in MB, separated by tabs."""
    assert str(report()) == (
        "REPORT RequestId: id-1\tDuration: 12.35 ms\tBilled Duration: 13 ms"
        "\tMemory Size: 512 MB\tMax Memory Used: 99 MB"
    )


def test_report_of_a_cold_invocation_bills_its_init() -> None:
    """The sum is rounded up, not its parts."""
    cold = report(init_ms=100.2)
    assert cold.billed_ms == 113
    assert str(cold).endswith("\tInit Duration: 100.20 ms")


def test_report_tells_how_it_ended() -> None:
    """An error with its type, a timeout without one, a function that raised not at all."""
    assert str(report(InvocationStatus.ERROR)).endswith("\tStatus: error\tError Type: Some.Error")
    assert str(report(InvocationStatus.TIMEOUT)).endswith("\tStatus: timeout")
    assert "Status" not in str(report(InvocationStatus.FAILURE))


def test_init_report() -> None:
    """Phase, and only of a failure a status, and only of an error its type."""
    line = "INIT_REPORT Init Duration: 1.50 ms\tPhase: init"
    assert init_report(1.5, "init") == line
    assert init_report(1.5, "init", "timeout") == f"{line}\tStatus: timeout"
    assert init_report(1.5, "init", "error", "X") == f"{line}\tStatus: error\tError Type: X"


@given(st.lists(st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=3000)))
def test_log_tail_is_the_end_of_the_log(lines: list[str]) -> None:
    """However much is written, the last 4 KB are those of the whole."""
    tail = LogTail()
    for line in lines:
        tail.add(line)
    whole = "".join(f"{line}\n" for line in lines).encode()
    assert bytes(tail) == whole[-TAIL_BYTES:]


def test_timestamp_is_that_of_cloudwatch() -> None:
    """UTC with milliseconds."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", timestamp())
