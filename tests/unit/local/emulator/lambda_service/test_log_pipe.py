"""A log that fails nobody."""

import errno

import pytest

from coldframe_local.emulator.lambda_service.telemetry.log_pipe import SafeLog


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        BrokenPipeError(),
        ValueError("I/O operation on closed file"),
        UnicodeEncodeError("ascii", "é", 0, 1, "ordinal not in range(128)"),
    ],
)
def test_line_that_cannot_be_written_is_lost_and_counted(error: Exception) -> None:
    """Nobody is told while the log fails; the first line after that is preceded by how many are lost."""
    lines: list[str] = []
    failures = [error, error]

    def write(line: str) -> None:
        if failures:
            raise failures.pop()
        lines.append(line)

    log = SafeLog(write)
    for line in ("lost", "lost too", "kept", "kept too"):
        log(line)
    assert lines == ["2 lines of this log are lost: they could not be written.", "kept", "kept too"]
