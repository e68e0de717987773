"""One batch of parts: few plans of passes for the texts of all messages, and one message's failure spares the
rest.

1. A message of a job that has ended, expired or started again is finished.
2. Parts are answered in groups of messages that are expected to end in time. Other messages are received
   again at once, without counting an attempt. A complete group is recorded before the next one starts.
3. If a service is not available, its messages are received again later. Errors of the work are isolated by
   bisection, and tried again a limited number of times.
4. A message that crashes its environment cannot report the crash. So a redelivered message is processed
   alone, and each start is recorded first. Only the crashing message uses up its attempts.
"""

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct

from coldframe.errors import BundleError, NotReady, OutOfTime, RequestError
from coldframe.jobs.backoff import RetryPolicy, firmly
from coldframe.jobs.finishing import end, end_if_answered
from coldframe.jobs.pace import Pace, work_bytes
from coldframe.jobs.ports import Objects, Queue, Store, Unavailable
from coldframe.jobs.records import (
    Job,
    Options,
    Part,
    Result,
    answers_key,
    content_digest,
    encode_answers,
    read_part,
    read_texts,
)
from coldframe.jobs.states import Event
from coldframe.schemas import TextAnswer
from coldframe.telemetry.job_traces import JobTraces
from coldframe.timing import Deadline

INLINE_BYTES = 32 * 1024
"""Most bytes of answers in the job's record: a write costs one unit per KB."""
NOT_OURS = (
    "This message does not belong to this queue: its body cannot be decoded. Remove it, or send it to the"
    " right queue."
)
_SERVER_ERROR = 500
_AT_ONCE_S = 1

T = TypeVar("T")


class Message(Struct, frozen=True):
    """A message as received. received: number of deliveries, with this one."""

    id: str
    receipt_handle: str
    body: str
    received: int = 1


class Answers(Struct, frozen=True):
    """Answers to texts, in their order, and the version of the model."""

    rows: Sequence[TextAnswer]
    version: str


class Answerer(Protocol):
    """The model."""

    def answer(self, texts: Sequence[str], options: Options, deadline: Deadline) -> Answers:
        """Answers each text. Raises RequestError, BundleError."""


class _Task(Struct, frozen=True):
    """A part to answer, and its message."""

    message: Message
    part: Part
    job: Job
    texts: list[str]
    attempts: int = 1


MapAll = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Applies a function to each of several values, perhaps in parallel."""


@dataclass(frozen=True)
class Worker:
    """Answers batches, one after the other.

    jitter: from 0 to 1. pause: waits for a number of seconds.
    trace_log: receives lines with spans; None: there are none.
    """

    store: Store
    objects: Objects
    queue: Queue
    control: Queue
    answerer: Answerer
    policy: RetryPolicy
    jitter: Callable[[], float]
    map_all: MapAll = map
    pause: Callable[[float], None] = time.sleep
    pace: Pace = field(default_factory=Pace)
    trace_log: Callable[[str], None] | None = None

    def handle(self, messages: Sequence[Message], deadline: Deadline) -> list[str]:
        """Answers a batch. Returns the ids of the messages to receive again."""
        return _Batch(self, deadline).run(messages)


class _Batch:
    """One batch. again, late: ids of messages to receive again; the late ones at once."""

    def __init__(self, worker: Worker, deadline: Deadline) -> None:
        self._worker = worker
        self._deadline = deadline
        self._has_begun = False
        self.again: dict[str, Message] = {}
        self.late: dict[str, Message] = {}
        self._errors: set[str] = set()
        self._traces = JobTraces(worker.trace_log)

    def run(self, messages: Sequence[Message]) -> list[str]:
        tasks = self._tasks(messages)
        for options in dict.fromkeys(task.job.options for task in tasks):
            of_options = [task for task in tasks if task.job.options == options]
            self._answer_in_groups([task for task in of_options if task.message.received <= 1])
            self._answer_alone([task for task in of_options if task.message.received > 1])
        list(self._worker.map_all(self._hide, [*self.again.values(), *self.late.values()]))
        self._traces.write()
        return [*self.again, *self.late]

    # Choosing the tasks.

    def _tasks(self, messages: Sequence[Message]) -> list[_Task]:
        """Parts to answer. All other messages are dealt with."""
        read = [(message, part) for message in messages if (part := self._read(message)) is not None]
        try:
            jobs = self._firmly(lambda: self._worker.store.get_many(list({part.job for _, part in read})))
            open_ = [(message, part, job) for message, part in read if (job := _open(jobs, part))]
            names = [part.name for _, part, _ in open_]
            recorded = self._firmly(lambda: self._worker.store.recorded(names)) if names else set()
        except Unavailable:
            self.again |= {message.id: message for message, _ in read}
            return []
        self._count([(message, part, job) for message, part, job in open_ if part.name in recorded])
        left = [(message, part, job) for message, part, job in open_ if part.name not in recorded]
        tasks = self._each(
            [_Task(message, part, job, part.texts) for message, part, job in left], self._fetched
        )
        for task in tasks:
            if task is not None:
                self._traces.count(task.job)
        return [task for task in tasks if task is not None]

    def _read(self, message: Message) -> Part | None:
        try:
            return read_part(message.body)
        except msgspec.DecodeError:
            self._fail(message)
            return None

    def _fail(self, message: Message) -> None:
        try:
            self._worker.queue.fail(message.body, NOT_OURS)
        except Unavailable:
            self.again[message.id] = message

    def _fetched(self, task: _Task) -> _Task:
        """The task with its texts. Raises Unavailable."""
        if not task.part.key:
            return task
        return msgspec.structs.replace(task, texts=read_texts(self._worker.objects.get(task.part.key)))

    def _each(self, tasks: Sequence[_Task], do: Callable[[_Task], T]) -> list[T | None]:
        """Applies `do` to all; a message whose services are not available is received again."""

        def done(task: _Task) -> T | None:
            try:
                return do(task)
            except Unavailable:
                self._retry(task)
                return None

        # A single task needs no pool, and may run on a thread of the pool that others wait for.
        return [done(task) for task in tasks] if len(tasks) == 1 else list(self._worker.map_all(done, tasks))

    # Answering.

    def _answer_in_groups(self, tasks: Sequence[_Task]) -> None:
        works = [work_bytes(task.texts) for task in tasks]
        while tasks:
            size = self._worker.pace.group(works, self._deadline.remaining_s())
            if not size and not self._has_begun:
                size = 1  # it may use all the time left
            if not size:
                self._set_late(tasks)
                return
            is_first, self._has_begun = not self._has_begun, True
            self._answer_together(tasks[:size], is_first)
            tasks, works = tasks[size:], works[size:]

    def _answer_together(self, tasks: Sequence[_Task], is_first: bool) -> None:
        """One plan of passes for all texts; after an error one for each half, down to single messages.

        is_first: first group of the batch, so a lack of time is its own fault.
        """
        texts = [text for task in tasks for text in task.texts]
        before_s = self._deadline.remaining_s()
        jobs = [task.job for task in tasks]
        try:
            with self._traces.block("answer", jobs):
                answers = self._worker.answerer.answer(texts, tasks[0].job.options, self._deadline)
        except (BundleError, NotReady):  # the environment's fault: no message could be answered
            list(self._worker.map_all(self._retry, tasks))
        except Exception as exc:  # a text's error concerns this text alone
            self._learn(texts, before_s)
            self._after_error(tasks, exc, is_first)
        else:
            self._learn(texts, before_s)
            with self._traces.block("record", jobs):
                self._record(tasks, answers)

    def _after_error(self, tasks: Sequence[_Task], error: Exception, is_first: bool) -> None:
        is_over = self._deadline.remaining_s() <= 0
        if len(tasks) > 1 and not is_over:
            self._answer_together(tasks[: len(tasks) // 2], is_first)
            self._answer_together(tasks[len(tasks) // 2 :], False)
        elif len(tasks) > 1 or (not is_first and (is_over or isinstance(error, OutOfTime))):
            self._set_late(tasks)
        else:
            self._failed(tasks[0], error)

    def _learn(self, texts: Sequence[str], before_s: float) -> None:
        self._worker.pace.add(work_bytes(texts), before_s - self._deadline.remaining_s())

    def _answer_alone(self, tasks: Sequence[_Task]) -> None:
        """Redelivered messages, those with the fewest starts first."""
        if not tasks:
            return
        ids = [task.message.id for task in tasks]
        try:
            starts = self._firmly(lambda: self._worker.store.starts(ids))
        except Unavailable:
            list(self._worker.map_all(self._retry, tasks))
            return
        most = self._worker.policy.attempts
        for task in sorted(tasks, key=lambda task: starts.get(task.message.id, 0)):
            if starts.get(task.message.id, 0) >= most:
                self._give_up(task, f"{_where(task)}: each of {most} attempts ended its environment")
            elif self._has_begun and not self._fits(task):
                self._set_late([task])
            else:
                is_first, self._has_begun = not self._has_begun, True
                self._answer_noted(task, is_first)

    def _fits(self, task: _Task) -> bool:
        return self._worker.pace.fits(work_bytes(task.texts), self._deadline.remaining_s())

    def _answer_noted(self, task: _Task, is_first: bool) -> None:
        """Answers one message, whose start is recorded in the meantime.

        After an error of the work the start stays recorded: it counts as an attempt.
        """
        message, start = task.message, str(task.message.received)
        try:
            attempts = self._firmly(lambda: self._worker.store.add_start(message.id, start))
            self._answer_together([msgspec.structs.replace(task, attempts=attempts + 1)], is_first)
            if (message.id in self.again or message.id in self.late) and message.id not in self._errors:
                self._firmly(lambda: self._worker.store.remove_start(message.id, start))
        except Unavailable:
            self._retry(task)

    def _firmly(self, call: Callable[[], T]) -> T:
        return firmly(call, self._worker.pause, self._worker.jitter)

    # Recording.

    def _record(self, tasks: Sequence[_Task], answers: Answers) -> None:
        """Stores the answers of a group, and then counts its parts, once for each job."""
        ends, last = [], 0
        for task in tasks:
            ends.append((last, last := last + len(task.texts)))
        of_task = {
            task.message.id: Answers(answers.rows[slice(*place)], answers.version)
            for task, place in zip(tasks, ends, strict=True)
        }
        stored = self._each(tasks, lambda task: self._keep(task, of_task[task.message.id]))
        self._count([(task.message, task.part, task.job) for task in stored if task is not None])

    def _keep(self, task: _Task, answers: Answers) -> _Task:
        """Stores the answers of a part. Raises Unavailable."""
        rows = [TextAnswer(task.part.first + i, row.heads) for i, row in enumerate(answers.rows)]
        content = encode_answers(rows)
        digest = content_digest(content)
        key = answers_key(task.job, task.part.part, digest) if len(content) > INLINE_BYTES else ""
        if key:
            self._worker.objects.put(key, content)
        inline = b"" if key else content
        result = Result(task.part.part, digest, answers.version, len(rows), inline, key)
        self._worker.store.put_result(task.job, result)
        return task

    def _count(self, stored: Sequence[tuple[Message, Part, Job]]) -> None:
        """Counts parts that have their results, and ends jobs that have all of them.

        After an interruption the messages are delivered again, and their results exist.
        """
        of_job: dict[str, list[tuple[Message, Part, Job]]] = defaultdict(list)
        for message, part, job in stored:
            of_job[job.id].append((message, part, job))

        def counted(lot: list[tuple[Message, Part, Job]]) -> None:
            job = lot[0][2]
            try:
                self._count_of(job, {part.part for _, part, _ in lot})
            except Unavailable:
                self.again |= {message.id: message for message, _, _ in lot}

        list(self._worker.map_all(counted, of_job.values()))

    def _count_of(self, job: Job, parts: set[int]) -> None:
        """Counts parts of one job. Raises Unavailable."""
        current: Job | None = job
        if new := parts - job.done:
            current = self._firmly(lambda: self._worker.store.add_done(job, sorted(new)))
        if current is not None:
            end_if_answered(current, self._worker.store, self._worker.control)

    # Ending.

    def _failed(self, task: _Task, error: Exception) -> None:
        """After an error of the work itself: the message is tried again, or fails."""
        is_final = isinstance(error, RequestError) and error.status < _SERVER_ERROR
        if not is_final and task.attempts < self._worker.policy.attempts:
            self.again[task.message.id] = task.message
            self._errors.add(task.message.id)
            return
        why = str(error) if isinstance(error, RequestError) else type(error).__name__
        attempts = "" if is_final else f" after {task.attempts} attempts"
        if isinstance(error, OutOfTime):
            why = "there was too little time to encode them. Send smaller parts"
        self._give_up(task, f"{_where(task)}{attempts}: {why}")

    def _retry(self, task: _Task) -> None:
        """After a failure of a service: the message is received again, unless that has happened too often."""
        message, most = task.message, self._worker.policy.failures
        if count_failure(self._worker.store, message) > most:
            self._give_up(task, f"{_where(task)}: a service was not available in {most} attempts")
        else:
            self.again[message.id] = message

    def _give_up(self, task: _Task, reason: str) -> None:
        """Moves the message to the queue of failed messages, and fails its job."""
        try:
            self._worker.queue.fail(task.message.body, reason)
            end(task.job, Event.FAIL, self._worker.store, self._worker.control, reason)
        except Unavailable:
            self.again[task.message.id] = task.message

    def _set_late(self, tasks: Sequence[_Task]) -> None:
        self.late |= {task.message.id: task.message for task in tasks}

    def _hide(self, message: Message) -> None:
        """Makes the queue deliver the message later. If that fails, its visibility timeout does it."""
        is_late = message.id in self.late
        worker = self._worker
        delay_s = _AT_ONCE_S if is_late else worker.policy.delay_s(message.received, worker.jitter)
        with contextlib.suppress(Unavailable):
            worker.queue.retry_in(message.receipt_handle, delay_s)


def count_failure(store: Store, message: Message) -> int:
    """Records that this attempt met a failing service. Returns their number; 0 if the store fails, too."""
    with contextlib.suppress(Unavailable):
        return store.add_start(f"{message.id}.failures", str(message.received))
    return 0


def _open(jobs: dict[str, Job], part: Part) -> Job | None:
    """The job of a part, if it has not ended."""
    job = jobs.get(part.job)
    return job if job and job.generation == part.generation and not job.state.has_ended else None


def _where(task: _Task) -> str:
    """Description of a message's texts, for its reason."""
    return f"texts {task.part.first} to {task.part.first + len(task.texts) - 1}"
