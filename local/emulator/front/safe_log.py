"""A log that fails nobody: a full disk, or a reader who left (`| head`), ends no invocation."""

from __future__ import annotations

from local.emulator.lambda_service.telemetry.log_pipe import Log


class SafeLog:
    """Writes lines with `write`. The number of lines that are lost is told as soon as possible."""

    def __init__(self, write: Log) -> None:
        self._write = write
        self._lost = 0

    def __call__(self, line: str) -> None:
        """Writes one line, or loses it."""
        try:
            if self._lost:
                self._write(f"{self._lost} lines of this log are lost: they could not be written.")
                self._lost = 0
            self._write(line)
        except (OSError, ValueError):  # ValueError: a closed file, a character that it cannot hold
            self._lost += 1
