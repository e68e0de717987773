"""Traces of jobs: a worker's spans continue the trace of the request that started the job."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from coldframe.telemetry.trace import TRACEPARENT, continue_trace
from coldframe.timing import Block, Clock, log_line, time_of_day


class Job(Protocol):
    """Attributes of a job. traceparent: W3C's header; "" for a job without a trace."""

    @property
    def id(self) -> str: ...

    @property
    def traceparent(self) -> str: ...


class JobTraces:
    """Work of one batch, by the job that it belongs to. Not safe for threads.

    log: receives a line for each job that has a trace; None: nothing is kept.
    clock: seconds from an arbitrary start. now: seconds since 1970.
    """

    def __init__(
        self,
        log: Callable[[str], None] | None,
        clock: Clock = time.perf_counter,
        now: Clock = time.time,
    ) -> None:
        self._log = log
        self._clock = clock
        self._now = now
        self._jobs: dict[str, Job] = {}
        self._blocks: defaultdict[str, list[Block]] = defaultdict(list)
        self._messages: Counter[str] = Counter()

    def count(self, job: Job) -> None:
        """Counts a message of a job."""
        self._messages[job.id] += 1

    @contextmanager
    def block(self, name: str, jobs: Iterable[Job]) -> Iterator[None]:
        """Adds the time of the `with` block to each job, whether it succeeds or not."""
        traced = {job.id: job for job in jobs if job.traceparent} if self._log is not None else {}
        self._jobs |= traced
        started = self._clock()
        try:
            yield
        finally:
            block = (name, started, self._clock())
            for job_id in traced:
                self._blocks[job_id].append(block)

    def write(self) -> None:
        """Logs a line for each job."""
        if self._log is not None:
            for job_id, job in self._jobs.items():
                self._log(self._line(job, self._blocks[job_id]))

    def _line(self, job: Job, blocks: list[Block]) -> str:
        trace = continue_trace({TRACEPARENT: job.traceparent})
        started, ended = blocks[0][1], blocks[-1][2]
        record = {
            "time": time_of_day(self._now() - (self._clock() - ended)),
            "event": "job",
            "job": job.id,
            "messages": self._messages[job.id],
            "duration_ms": round((ended - started) * 1e3, 3),
            **trace.log_fields(),
        }
        if trace.is_sampled:
            record["spans_ms"] = [
                (name, round((begin - started) * 1e3, 3), round((end - begin) * 1e3, 3))
                for name, begin, end in blocks
            ]
        return log_line(**record)
