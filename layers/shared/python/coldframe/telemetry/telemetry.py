"""Additions to the log line of a request: its place in a trace, its spans, and its metrics."""

import threading
from collections.abc import Mapping
from typing import cast

from coldframe.telemetry.metrics_line import add_metrics
from coldframe.telemetry.trace import Trace, continue_trace
from coldframe.timing import BLOCKS, Block


class Telemetry:
    """Additions to log lines, as the settings request them. Safe for threads.

    namespace: CloudWatch's namespace of the metrics; "": no metrics. traces: whether lines carry spans.
    start_kind: how this environment was initialised: Lambda's initialization type, or `server`.
    """

    def __init__(self, namespace: str, traces: bool, start_kind: str) -> None:
        self._namespace = namespace
        self._traces = traces
        self._start_kind = start_kind
        self._first = threading.Lock()

    def trace(self, headers: Mapping[str, str], platform_header: str) -> Trace | None:
        """The request's place in its trace; None where traces are off."""
        return continue_trace(headers, platform_header) if self._traces else None

    def add_to(self, record: dict[str, object], trace: Trace | None, started: float, now_s: float) -> None:
        """Adds fields to a request's log record.

        started: beginning of the request by the clock of its stages. now_s: seconds since 1970.
        """
        blocks = cast(list[Block], record.pop(BLOCKS, []))
        if trace is not None:
            record |= trace.log_fields()
            if trace.is_sampled:
                record["spans_ms"] = [
                    (name, round((start - started) * 1e3, 3), round((end - start) * 1e3, 3))
                    for name, start, end in blocks
                ]
        if self._namespace:
            is_first = self._first.acquire(blocking=False)
            add_metrics(record, self._namespace, self._start_kind if is_first else "", now_s)
