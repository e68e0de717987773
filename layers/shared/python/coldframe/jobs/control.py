"""Messages about whole jobs, processed one at a time: divide a source, or notify a receiver of an end.

They have their own queue and function, so a source that crashes its environment delays no other work.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from coldframe.jobs.backoff import RetryPolicy, firmly
from coldframe.jobs.finishing import end, end_if_answered, sweep
from coldframe.jobs.ports import BadSource, Notifier, Objects, Queue, Store, Unavailable
from coldframe.jobs.records import Job, Notify, Split, SplitPlace, read_control
from coldframe.jobs.splitting import Splitter
from coldframe.jobs.states import Event
from coldframe.jobs.worker import NOT_OURS, MapAll, Message, count_failure
from coldframe.telemetry.job_traces import JobTraces
from coldframe.timing import Clock, Deadline

_TELLING_ATTEMPTS = 12  # half an hour, with the pauses of RetryPolicy
_LAST_NOTICE_S = 7_200.0  # before a job expires; the sweep sends a notice once an hour
_AT_ONCE_S = 1

T = TypeVar("T")


@dataclass(frozen=True)
class Controller:
    """Handles messages of the control queue. parts: the queue of parts.

    now: seconds since 1970. jitter: from 0 to 1. pause: waits for a number of seconds.
    trace_log: receives lines with spans; None: none.
    """

    store: Store
    objects: Objects
    parts: Queue
    control: Queue
    notifier: Notifier
    policy: RetryPolicy
    now: Clock
    jitter: Callable[[], float]
    map_all: MapAll = map
    pause: Callable[[float], None] = time.sleep
    trace_log: Callable[[str], None] | None = None

    def handle(self, message: Message, deadline: Deadline) -> bool:
        """Whether the message is finished; if not, it is received again."""
        try:
            delay_s = self._handle(message, deadline)
        except Unavailable:
            delay_s = self._delay_s(message)
        if delay_s is None:
            return True
        try:
            self.control.retry_in(message.receipt_handle, delay_s)
        except Unavailable:
            return False  # its visibility timeout returns it
        return False

    def sweep(self) -> int:
        """Ends jobs without messages, and repeats missing notices. Returns the number of jobs that were
        due.
        """
        return sweep(self.store, self.control, self.now())

    def _delay_s(self, message: Message) -> int:
        return self.policy.delay_s(message.received, self.jitter)

    def _handle(self, message: Message, deadline: Deadline) -> int | None:
        """Seconds until the message is received again; None when it is finished. Raises Unavailable."""
        try:
            body = read_control(message.body)
        except msgspec.DecodeError:
            self.control.fail(message.body, NOT_OURS)
            return None
        job = self._firmly(lambda: self.store.get(body.job))
        if job is None or job.generation != body.generation:
            return None
        if isinstance(body, Notify):
            with self._traced("notify", job):
                return self._notify(message, job)
        if job.state.has_ended or job.parts is not None:
            end_if_answered(job, self.store, self.control)
            return None
        with self._traced("divide", job):
            return self._split(message, job, deadline)

    @contextmanager
    def _traced(self, name: str, job: Job) -> Iterator[None]:
        """Logs the time of the `with` block as a span of the job's trace."""
        traces = JobTraces(self.trace_log)
        traces.count(job)
        try:
            with traces.block(name, [job]):
                yield
        finally:
            traces.write()

    def _split(self, message: Message, job: Job, deadline: Deadline) -> int | None:
        """One run of a split. Each run is recorded before it starts, as it may crash its environment."""
        if job.split is None:
            self.store.begin_split(job, SplitPlace())
            return _AT_ONCE_S
        run = f"{message.id}.{message.received}"
        starts = self._firmly(lambda: self.store.add_split_start(job, run))
        if not starts:
            return _AT_ONCE_S  # another run has moved it
        most, where = self.policy.attempts, f"the source, from text {job.split.first}"
        if starts > most:
            self._give_up(message, job, f"{where}: each of {most} attempts ended its environment")
            return None
        try:
            moved = self._splitter().run(job, run, deadline)
        except BadSource as exc:
            self._give_up(message, job, str(exc))
        except Unavailable as exc:
            self._firmly(lambda: self.store.remove_split_start(job, run))
            if count_failure(self.store, message) <= self.policy.failures:
                raise
            self._give_up(message, job, f"{where}: a service was not available ({exc})")
        except Exception as exc:  # a source's error concerns this source alone
            if starts < most:
                return self._delay_s(message)
            self._give_up(message, job, f"{where}: it could not be read ({type(exc).__name__})")
        else:
            self._after_run(moved)
        return None

    def _splitter(self) -> Splitter:
        return Splitter(self.store, self.objects, self.parts, self._firmly, self.map_all)

    def _after_run(self, job: Job | None) -> None:
        """Sends a new message for the rest of a split that made progress; the new message's attempts start at
        zero.
        """
        if job is None:
            return
        end_if_answered(job, self.store, self.control)
        if job.parts is None:
            self.control.send([Split(job.id, job.generation)])

    def _firmly(self, call: Callable[[], T]) -> T:
        return firmly(call, self.pause, self.jitter)

    def _give_up(self, message: Message, job: Job, reason: str) -> None:
        """Moves the message to the queue of failed messages, and fails its job. Raises Unavailable."""
        self.control.fail(message.body, reason)
        end(job, Event.FAIL, self.store, self.control, reason)

    def _notify(self, message: Message, job: Job) -> int | None:
        if job.push is None or job.notified or not job.state.has_ended:
            return None
        try:
            self.notifier.notify(job)
        except Unavailable as exc:
            if message.received < _TELLING_ATTEMPTS:
                raise
            if self.now() < job.expires_s - _LAST_NOTICE_S:
                return None  # the sweeper sends another one
            self.control.fail(message.body, f"the receiver could not be notified: {exc}")
        except BadSource as exc:
            self.control.fail(message.body, f"the receiver could not be notified: {exc}")
        self.store.set_notified(job)
        return None
