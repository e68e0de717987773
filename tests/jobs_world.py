"""A world for jobs in memory: a store, objects and a queue in virtual time, with faults from a seed."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from coldframe.api.schemas import HeadAnswer, Score, TextAnswer
from coldframe.errors import Invalid
from coldframe.jobs.object_file import Pin
from coldframe.jobs.ports import BadSource, Unavailable
from coldframe.jobs.records import Body, Job, Options, Result, content_digest
from coldframe.jobs.states import Event, State, step
from coldframe.jobs.worker import Answers, Message
from coldframe.timing import Deadline

T = TypeVar("T")
POISON, KILLER = "poison", "killer"
replace = msgspec.structs.replace


class Killed(BaseException):
    """The environment ends here, whatever it was doing."""


class Faults:
    """What goes wrong, from a seed. fails, kills: probabilities of each call."""

    def __init__(self, seed: int = 0, fails: float = 0.0, kills: float = 0.0) -> None:
        self.random = random.Random(seed)
        self.fails = fails
        self.kills = kills

    def maybe(self) -> None:
        """To be called before a call has its effect, and after it."""
        found = self.random.random()
        if found < self.kills:
            raise Killed
        if found < self.kills + self.fails:
            raise Unavailable("Throttled")


class MemoryStore:
    """A store in memory. A call that fails may have had its effect."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.jobs: dict[str, Job] = {}
        self.parts: dict[str, dict[int, Result]] = {}
        self.started: dict[str, set[str]] = {}
        self.writes = 0
        self._faults = faults or Faults()

    def create(self, job: Job) -> Job:
        return self._change(lambda: self.jobs.setdefault(job.id, job))

    def get(self, job_id: str) -> Job | None:
        self._faults.maybe()
        return self.jobs.get(job_id)

    def get_many(self, job_ids: Sequence[str]) -> dict[str, Job]:
        self._faults.maybe()
        return {each: self.jobs[each] for each in job_ids if each in self.jobs}

    def apply(self, job_id: str, event: Event, reason: str = "") -> Job | None:
        def applied(job: Job) -> Job:
            after = step(job.state, event)
            return replace(job, state=after, reason=reason) if after is not job.state else job

        return self._update(job_id, applied)

    def set_parts(self, job_id: str, parts: int) -> Job | None:
        def known(job: Job) -> Job:
            return replace(job, parts=parts) if job.parts is None and not job.state.has_ended else job

        return self._update(job_id, known)

    def record(self, job_id: str, result: Result) -> Job | None:
        def recorded(job: Job) -> Job:
            parts = self.parts.setdefault(job_id, {})
            if job.state.has_ended or result.part in parts:
                return job
            parts[result.part] = result
            return replace(job, done=job.done + 1)

        return self._update(job_id, recorded)

    def results(self, job_id: str) -> list[Result]:
        self._faults.maybe()
        return [result for _, result in sorted(self.parts.get(job_id, {}).items())]

    def recorded(self, parts: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
        self._faults.maybe()
        return {(job, part) for job, part in parts if part in self.parts.get(job, {})}

    def add_start(self, message_id: str, start: str) -> int:
        def added() -> int:
            self.started.setdefault(message_id, set()).add(start)
            return len(self.started[message_id])

        return self._change(added)

    def remove_start(self, message_id: str, start: str) -> None:
        self._change(lambda: self.started.get(message_id, set()).discard(start))

    def starts(self, message_ids: Sequence[str]) -> dict[str, int]:
        self._faults.maybe()
        return {each: len(self.started[each]) for each in message_ids if self.started.get(each)}

    def set_notified(self, job_id: str) -> None:
        self._update(job_id, lambda job: replace(job, notified=True))

    def _update(self, job_id: str, change: Callable[[Job], Job]) -> Job | None:
        def changed() -> Job | None:
            if job_id in self.jobs:
                self.jobs[job_id] = change(self.jobs[job_id])
            return self.jobs.get(job_id)

        return self._change(changed)

    def _change(self, change: Callable[[], T]) -> T:
        self._faults.maybe()
        self.writes += 1
        found = change()
        self._faults.maybe()
        return found


class MemoryObjects:
    """Objects in memory. Raises AssertionError when a key gets other content than it had."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.contents: dict[str, bytes] = {}
        self._faults = faults or Faults()

    def put(self, key: str, content: bytes) -> None:
        self._faults.maybe()
        assert self.contents.setdefault(key, content) == content, f"{key} is written twice, differently"

    def get(self, key: str) -> bytes:
        self._faults.maybe()
        return self.contents[key]

    def pin(self, uri: str) -> Pin:
        self._faults.maybe()
        if uri not in self.contents:
            raise BadSource("the source cannot be read: NoSuchKey")
        return Pin(content_digest(self.contents[uri]), len(self.contents[uri]))

    def read_range(self, uri: str, pin: Pin, first: int, last: int) -> bytes:
        if self.pin(uri) != pin:
            raise BadSource("the source was changed while it was read")
        return self.contents[uri][first : last + 1]

    def url(self, key: str) -> str:
        return f"https://bucket/{key}"


class MemoryQueue:
    """A standard queue in virtual time: out of order, and at least once.

    clock: turned by `receive`, to when the next message is visible.
    """

    def __init__(self, faults: Faults | None = None, visibility_s: float = 60.0) -> None:
        self.now_s = 0.0
        self.failed: list[tuple[str, str]] = []
        self.deliveries = 0
        self._visibility_s = visibility_s
        self._faults = faults or Faults()
        self._messages: dict[str, Message] = {}
        self._visible: list[tuple[float, int, str]] = []
        self._version: dict[str, int] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._messages)

    def send(self, bodies: Sequence[Body]) -> None:
        for body in bodies:
            self._faults.maybe()
            self.add(msgspec.json.encode(body).decode())

    def add(self, body: str) -> str:
        name = f"m{next(self._numbers)}"
        self._messages[name] = Message(name, name, body, 0, self.now_s)
        self._show(name, self.now_s)
        return name

    def receive(self, most: int) -> list[Message]:
        """Up to so many messages, once there are any."""
        found: list[Message] = []
        while self._visible and len(found) < most:
            visible_s, number, name = self._visible[0]
            if visible_s > self.now_s:
                if found:
                    break
                self.now_s = visible_s
            heapq.heappop(self._visible)
            if name not in self._messages or self._version[name] != number:
                continue
            message = replace(self._messages[name], received=self._messages[name].received + 1)
            self._messages[name] = message
            self._show(name, self.now_s + self._visibility_s)
            self.deliveries += 1
            found.append(message)
        return found

    def delete(self, name: str) -> None:
        self._messages.pop(name, None)

    def retry_in(self, receipt_handle: str, delay_s: int) -> None:
        self._faults.maybe()
        if receipt_handle in self._messages:
            self._show(receipt_handle, self.now_s + delay_s)

    def fail(self, body: str, reason: str) -> None:
        self._faults.maybe()
        self.failed.append((body, reason))

    def _show(self, name: str, visible_s: float) -> None:
        number = next(self._numbers)
        self._version[name] = number
        heapq.heappush(self._visible, (visible_s, number, name))


class Told:
    """Who is told of jobs that ended."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.states: dict[str, set[State]] = {}
        self._faults = faults or Faults()

    def tell(self, job: Job) -> None:
        self._faults.maybe()
        self.states.setdefault(job.id, set()).add(job.state)


class Echo:
    """A model whose answer is the text itself. A poisoned text is refused, a killer ends the environment.

    version: a deployment changes it, and what is answered with it.
    """

    def __init__(self, faults: Faults | None = None) -> None:
        self.calls: list[int] = []
        self.texts = 0
        self.version = 1
        self._faults = faults or Faults()

    def answer(self, texts: Sequence[str], options: Options, deadline: Deadline) -> Answers:
        self.calls.append(len(texts))
        if KILLER in texts or self._faults.random.random() < self._faults.kills:
            raise Killed
        if POISON in texts:
            raise Invalid("A text is poisoned.")
        self.texts += len(texts)
        return Answers([answer_to(text, version=self.version) for text in texts], f"v{self.version}")


def answer_to(text: str, index: int = 0, version: int = 1) -> TextAnswer:
    """What a version of `Echo` says of a text."""
    return TextAnswer(index, {"auto": HeadAnswer(text, 1.0, [Score(text, version)], 0.0)})


def text_of(answer: TextAnswer) -> str | None:
    """The text that `Echo` answered."""
    return answer.heads["auto"].label


def answers_of(store: MemoryStore, objects: MemoryObjects, job_id: str) -> list[TextAnswer]:
    """All answers of a job, as they are kept."""
    rows: list[TextAnswer] = []
    for _, result in sorted(store.parts.get(job_id, {}).items()):
        content = result.inline or objects.contents[result.key]
        assert content_digest(content) == result.digest
        rows += msgspec.json.decode(content, type=list[TextAnswer])
    return rows
