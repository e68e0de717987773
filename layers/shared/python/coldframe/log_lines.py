"""Log lines of functions that have the standard library alone: the warmer, and the hooks of deployments."""

import json
import time
from datetime import UTC, datetime


def plain_line(event: str, started_s: float, **values: object) -> str:
    """One line of JSON with its time and its duration, as other functions write it.

    started_s: beginning of the work, by `time.monotonic`. Callers pass counts, times and names, never texts.
    """
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    duration_ms = round((time.monotonic() - started_s) * 1e3, 1)
    return json.dumps({"time": now, "event": event, **values, "duration_ms": duration_ms})
