"""Runs inside a fresh process: invocations of the function, and what they took.

    python -m coldframe_bench.loader.invocations < events        one JSON event per line

As a runtime client does it: JSON in, the handler, JSON out, and nothing kept. Writes one number per line,
milliseconds of each invocation, and at last the peak of memory in MB.
"""

import json
import resource
import sys
import time
from pathlib import Path
from types import SimpleNamespace

_STATUS = Path("/proc/self/status")


def main() -> None:
    """Answers all events. Ends with an error for a status other than 200."""
    from coldframe_functions.predict.app import handler

    context = SimpleNamespace(aws_request_id="bench", get_remaining_time_in_millis=lambda: 290_000)
    for line in sys.stdin.buffer:
        event = json.loads(line)
        started = time.perf_counter()
        answer = handler(event, context)
        spent_ms = (time.perf_counter() - started) * 1e3
        del event
        content = json.dumps(answer)
        if answer["statusCode"] != 200:
            sys.exit(f"The function answered {content[:500]}, expected status 200. Check the model.")
        print(spent_ms)
        del line, answer, content
    print(_peak_mb())


def _peak_mb() -> float:
    """The kernel's own figure. On Linux, `getrusage` has the peak of the parent, too."""
    if _STATUS.exists():
        facts = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
        return int(facts["VmHWM"].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main()
