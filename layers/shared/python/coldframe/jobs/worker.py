"""One batch of messages, worked off: texts of all of them in one plan of passes, each failure on its own.

Three kinds of failure are told apart. A service that is not available is waited for, as long as the message's
age allows. An error of the work itself is isolated by bisection, and tried again so many times. A message
that ends its environment never gets to say so: what is received again is begun alone, and each such
start is noted before it, so that it is the message to blame that runs out of attempts, and no other.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct

from coldframe.api.schemas import TextAnswer
from coldframe.errors import BundleError, NotReady, OutOfTime, RequestError
from coldframe.jobs.backoff import RetryPolicy
from coldframe.jobs.ending import settle
from coldframe.jobs.ports import BadSource, Objects, Queue, Store, Teller, Unavailable
from coldframe.jobs.records import (
    Body,
    Job,
    Notify,
    Options,
    Part,
    Result,
    Split,
    content_digest,
    encode_answers,
    read_body,
    read_texts,
)
from coldframe.jobs.sources import split_source
from coldframe.jobs.states import Event, State
from coldframe.timing import Clock, Deadline

INLINE_BYTES = 32 * 1024
"""Answers up to this size are kept in the job's record: a write costs as many units as it has KB."""
_SERVER_ERROR = 500
_FIRM_ATTEMPTS = 8
_TELLING_ATTEMPTS = 12  # half an hour, with the pauses of RetryPolicy

T = TypeVar("T")


class Message(Struct, frozen=True):
    """A message as it was received. received: how often, this time included. sent_s: since 1970."""

    id: str
    receipt_handle: str
    body: str
    received: int = 1
    sent_s: float = 0.0


class Answers(Struct, frozen=True):
    """Answers to texts, in their order, and the version of the model that gave them."""

    rows: Sequence[TextAnswer]
    version: str


class Answerer(Protocol):
    """The model."""

    def answer(self, texts: Sequence[str], options: Options, deadline: Deadline) -> Answers:
        """Answers each text. Raises RequestError, BundleError."""


class _Task(Struct, frozen=True):
    """A part to be answered, and the message that it came with."""

    message: Message
    part: Part
    job: Job
    texts: list[str]
    attempts: int = 1


MapAll = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


@dataclass(frozen=True)
class Worker:
    """Works off batches, one after the other.

    now: seconds since 1970. jitter: from 0 to 1. map_all: applies a function to all of some, maybe at the
    same time.
    """

    store: Store
    objects: Objects
    queue: Queue
    teller: Teller
    answerer: Answerer
    policy: RetryPolicy
    now: Clock
    jitter: Callable[[], float]
    map_all: MapAll = map

    def handle(self, messages: Sequence[Message], deadline: Deadline) -> list[str]:
        """Works off a batch. Returns the ids of the messages that are to be received again."""
        return _Batch(self, deadline).run(messages)


class _Batch:
    """One batch. again: messages to be received again, by id; whatever is not in it is over."""

    def __init__(self, by: Worker, deadline: Deadline) -> None:
        self._by = by
        self._deadline = deadline
        self.again: dict[str, Message] = {}
        self._errors: set[str] = set()

    def run(self, messages: Sequence[Message]) -> list[str]:
        tasks = self._tasks(messages)
        for options in dict.fromkeys(task.job.options for task in tasks):
            of_options = [task for task in tasks if task.job.options == options]
            self._answer_together([task for task in of_options if task.message.received <= 1])
            self._answer_alone([task for task in of_options if task.message.received > 1])
        for message in self.again.values():
            self._hide(message)
        return list(self.again)

    # What is to be done.

    def _tasks(self, messages: Sequence[Message]) -> list[_Task]:
        """Parts to be answered. All other messages are dealt with."""
        read = [(message, body) for message in messages if (body := self._read(message)) is not None]
        try:
            jobs = self._by.store.get_many(list(dict.fromkeys(body.job for _, body in read)))
            parts = [(body.job, body.part) for _, body in read if isinstance(body, Part)]
            recorded = self._by.store.recorded(parts) if parts else set()
        except Unavailable:
            self.again |= {message.id: message for message, _ in read}
            return []
        begun = self._begin(jobs, [body for _, body in read if not isinstance(body, Notify)])
        tasks = self._each(read, lambda message, body: self._task(message, body, jobs, begun, recorded))
        return [task for task in tasks if task is not None]

    def _read(self, message: Message) -> Body | None:
        try:
            return read_body(message.body)
        except msgspec.DecodeError:
            self._give_up(message, "", "the message is none of a job")
            return None

    def _begin(self, jobs: dict[str, Job], bodies: Sequence[Body]) -> dict[str, Job | None]:
        """Jobs that are worked on now, as they are then; None where that could not be said."""
        queued = [each for each in dict.fromkeys(body.job for body in bodies) if self._is_queued(jobs, each)]

        def begin(job_id: str) -> Job | None:
            try:
                return self._by.store.apply(job_id, Event.BEGIN)
            except Unavailable:
                return None

        return dict(zip(queued, self._by.map_all(begin, queued), strict=True))

    @staticmethod
    def _is_queued(jobs: dict[str, Job], job_id: str) -> bool:
        return job_id in jobs and jobs[job_id].state is State.QUEUED

    def _task(
        self,
        message: Message,
        body: Body,
        jobs: dict[str, Job],
        begun: dict[str, Job | None],
        recorded: set[tuple[str, int]],
    ) -> _Task | None:
        """What is left to do for a message, if anything is. Raises Unavailable."""
        job = begun.get(body.job, jobs.get(body.job))
        if body.job in begun and job is None:
            raise Unavailable("the job could not be begun")
        if job is None:
            self._give_up(message, "", "its job is not known, or has expired")
        elif isinstance(body, Notify):
            self._tell(message, job)
        elif job.state.has_ended or (isinstance(body, Part) and (job.id, body.part) in recorded):
            self._settle(job)
        elif self._by.now() - message.sent_s > self._by.policy.age_s:
            self._give_up(message, job.id, f"it was tried for {self._by.policy.age_s:.0f} s, and is too old")
        elif isinstance(body, Split):
            self._split(message, job)
        else:
            texts = read_texts(self._by.objects.get(body.key)) if body.key else body.texts
            return _Task(message, body, job, texts)
        return None

    def _each(self, pairs: Sequence[tuple[Message, Any]], do: Callable[[Message, Any], Any]) -> list[Any]:
        """`do` for all; a message whose services are not available is received again."""

        def done(pair: tuple[Message, Any]) -> Any:
            try:
                return do(*pair)
            except Unavailable:
                self.again[pair[0].id] = pair[0]
                return None

        # One alone needs no help, and may be on a thread already that the others wait for.
        return [done(pair) for pair in pairs] if len(pairs) == 1 else list(self._by.map_all(done, pairs))

    # Answers.

    def _answer_together(self, tasks: Sequence[_Task]) -> None:
        """One plan of passes for all texts; after an error one for each half, down to single messages."""
        if not tasks:
            return
        texts = [text for task in tasks for text in task.texts]
        try:
            answers = self._by.answerer.answer(texts, tasks[0].job.options, self._deadline)
        except (BundleError, NotReady):  # the environment's fault: nothing here would be answered
            self.again |= {task.message.id: task.message for task in tasks}
        except Exception as exc:  # whatever a text provokes is that text's own
            if self._deadline.remaining_s() <= 0:
                self.again |= {task.message.id: task.message for task in tasks}
            elif len(tasks) == 1:
                self._failed(tasks[0], exc)
            else:
                self._answer_together(tasks[: len(tasks) // 2])
                self._answer_together(tasks[len(tasks) // 2 :])
        else:
            self._record_all(tasks, answers)

    def _answer_alone(self, tasks: Sequence[_Task]) -> None:
        """Messages that were received before: those that were begun the least first."""
        if not tasks:
            return
        try:
            starts = self._by.store.starts([task.message.id for task in tasks])
        except Unavailable:
            self.again |= {task.message.id: task.message for task in tasks}
            return
        for task in sorted(tasks, key=lambda task: starts.get(task.message.id, 0)):
            if self._deadline.remaining_s() <= 0:
                self.again[task.message.id] = task.message
            elif starts.get(task.message.id, 0) >= self._by.policy.attempts:
                reason = f"{_where(task)}: each of {self._by.policy.attempts} attempts ended its environment"
                self._give_up(task.message, task.job.id, reason)
            else:
                self._each([(task.message, task)], lambda _, each: self._answer_noted(each))

    def _answer_noted(self, task: _Task) -> None:
        """Answers one message whose start is noted for as long as it lasts. Raises Unavailable.

        An error of the work stays noted: it is an attempt, too.
        """
        message, start = task.message, str(task.message.received)
        try:
            attempts = self._firmly(lambda: self._by.store.add_start(message.id, start))
            self._answer_together([msgspec.structs.replace(task, attempts=attempts + 1)])
        except Unavailable:
            self.again[message.id] = message
        if message.id in self.again and message.id not in self._errors:
            self._firmly(lambda: self._by.store.remove_start(message.id, start))

    def _firmly(self, call: Callable[[], T]) -> T:
        """A call that may be repeated without another effect. Raises Unavailable."""
        for _ in range(_FIRM_ATTEMPTS - 1):
            with contextlib.suppress(Unavailable):
                return call()
        return call()

    def _record_all(self, tasks: Sequence[_Task], answers: Answers) -> None:
        ends, end = [], 0
        for task in tasks:
            ends.append((end, end := end + len(task.texts)))
        pairs = [
            (task.message, (task, Answers(answers.rows[slice(*place)], answers.version)))
            for task, place in zip(tasks, ends, strict=True)
        ]
        self._each(pairs, lambda _, pair: self._record(*pair))

    def _record(self, task: _Task, answers: Answers) -> None:
        """Keeps the answers of a part. Content is named by its digest, so a repeat writes equal bytes."""
        rows = [TextAnswer(task.part.first + i, row.heads) for i, row in enumerate(answers.rows)]
        content = encode_answers(rows)
        digest = content_digest(content)
        key = ""
        if len(content) > INLINE_BYTES:
            key = f"jobs/{task.job.id}/results/{task.part.part:05d}-{digest}.json"
            self._by.objects.put(key, content)
        inline = b"" if key else content
        result = Result(task.part.part, digest, answers.version, len(rows), inline, key)
        job = self._by.store.record(task.job.id, result)
        if job is not None:
            self._settle(job)

    # Ends.

    def _settle(self, job: Job) -> None:
        settle(job, self._by.store, self._by.queue)

    def _failed(self, task: _Task, error: Exception) -> None:
        """What an error of the work itself means for its message."""
        is_final = isinstance(error, RequestError) and error.status < _SERVER_ERROR
        if not is_final and task.attempts < self._by.policy.attempts:
            self.again[task.message.id] = task.message
            self._errors.add(task.message.id)
            return
        why = str(error) if isinstance(error, RequestError) else type(error).__name__
        attempts = "" if is_final else f" after {task.attempts} attempts"
        if isinstance(error, OutOfTime):
            why = "there was too little time to encode them"
        self._give_up(task.message, task.job.id, f"{_where(task)}{attempts}: {why}")

    def _give_up(self, message: Message, job_id: str, reason: str) -> None:
        """The message ends in the queue of failed ones, and its job with it."""

        def given_up(message: Message, _: None) -> None:
            job = self._by.store.apply(job_id, Event.FAIL, reason) if job_id else None
            self._by.queue.fail(message.body, reason)
            if job is not None:
                self._settle(job)

        self._each([(message, None)], given_up)

    def _split(self, message: Message, job: Job) -> None:
        """Divides a source into parts. A repeat writes equal objects, and messages that are seen through."""
        assert job.source is not None  # noqa: S101 - the door sends this message for a source alone
        try:
            parts = split_source(job.id, job.source, self._by.objects, self._by.queue)
        except BadSource as exc:
            self._give_up(message, job.id, str(exc))
            return
        except Unavailable:
            raise
        except Exception as exc:  # whatever a source provokes is that source's own
            if message.received < self._by.policy.attempts:
                self.again[message.id] = message
            else:
                self._give_up(message, job.id, f"its source could not be read: {type(exc).__name__}")
            return
        found = self._by.store.set_parts(job.id, parts)
        if found is not None:
            self._settle(found)

    def _tell(self, message: Message, job: Job) -> None:
        if job.notified or job.push is None:
            return
        try:
            self._by.teller.tell(job)
        except BadSource as exc:
            self._give_up(message, "", f"nobody could be told: {exc}")
        except Unavailable as exc:
            if message.received < _TELLING_ATTEMPTS:
                raise
            self._give_up(message, "", f"nobody could be told: {exc}")
        else:
            self._by.store.set_notified(job.id)

    def _hide(self, message: Message) -> None:
        """Lets the message be received again later. Where that fails, its visibility timeout does it."""
        delay_s = self._by.policy.delay_s(message.received, self._by.jitter)
        try:
            self._by.queue.retry_in(message.receipt_handle, delay_s)
        except Unavailable:
            return


def _where(task: _Task) -> str:
    """Which texts of the job a message holds."""
    return f"texts {task.part.first} to {task.part.first + len(task.texts) - 1}"
