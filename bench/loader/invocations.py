"""Runs inside a fresh process: warm invocations of the function, and what they took.

    python -m bench.loader.invocations < events        one JSON event per line

Writes one number per line, milliseconds of each invocation, and at last the peak of memory in MB.
"""

import json
import resource
import sys
import time
from types import SimpleNamespace

_WARM_UP = 10


def main() -> None:
    """Sends the first events twice: work done once in an environment does not belong to warm invocations."""
    from functions.predict.app import handler

    context = SimpleNamespace(aws_request_id="bench", get_remaining_time_in_millis=lambda: 29_000)
    events = [json.loads(line) for line in sys.stdin]
    for event in events[:_WARM_UP]:
        handler(event, context)
    for event in events:
        started = time.perf_counter()
        answer = handler(event, context)
        spent_ms = (time.perf_counter() - started) * 1e3
        if answer["statusCode"] != 200:
            sys.exit(f"The function answered {answer['statusCode']}, expected 200.")
        print(spent_ms)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(peak / (2**20 if sys.platform == "darwin" else 1024))


if __name__ == "__main__":
    main()
