"""A world for jobs in memory: a store, objects and a queue in virtual time, with faults from a seed."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from coldframe.errors import Invalid, OutOfTime
from coldframe.jobs.object_file import Pin
from coldframe.jobs.ports import BadSource, Unavailable
from coldframe.jobs.records import Body, Job, Options, PartName, Result, SplitPlace, content_digest
from coldframe.jobs.states import Event, State, step
from coldframe.jobs.worker import Answers, Message
from coldframe.schemas import HeadAnswer, Score, TextAnswer
from coldframe.timing import Clock, Deadline

T = TypeVar("T")
POISON, KILLER, SLOW = "poison", "killer", "slow"
_SLOW_S = 5.0
_MESSAGES_OF_A_CALL = 10
replace = msgspec.structs.replace


class Killed(BaseException):
    """The environment ends here, whatever it was doing."""


class Faults:
    """Faults of services, from a seed. fails, kills: probabilities of each call.

    meet: what others do meanwhile. alive: whether the caller's environment has not run into its timeout.
    """

    def __init__(self, seed: int = 0, fails: float = 0.0, kills: float = 0.0) -> None:
        self.random = random.Random(seed)
        self.fails = fails
        self.kills = kills
        self.meet: Callable[[], None] = lambda: None
        self.alive: Callable[[], bool] = lambda: True

    def maybe(self) -> None:
        """To be called before a call has its effect, and after it."""
        self.meet()
        found = self.random.random()
        if found < self.kills or not self.alive():
            raise Killed
        if found < self.kills + self.fails:
            raise Unavailable("Throttled")


class VirtualTime:
    """Seconds since 1970, as the tests turn them. Calling it reads it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> None:
        self.now_s += seconds


class MemoryStore:
    """A store in memory. A call that fails may have had its effect.

    As in DynamoDB, what has expired is still there until `delete_expired`, and refuses conditional writes.
    """

    def __init__(self, faults: Faults | None = None, now: Clock = lambda: 0.0) -> None:
        self.jobs: dict[str, Job] = {}
        self.parts: dict[tuple[str, str], dict[int, Result]] = {}  # by job and generation
        self._expires_s: dict[tuple[str, str], float] = {}
        self.started: dict[str, set[str]] = {}
        self.split_starts: dict[tuple[str, str], set[str]] = {}
        self.writes = 0
        self._due: dict[str, float] = {}  # the sparse index
        self._now = now
        self._faults = faults or Faults()

    def create(self, job: Job) -> Job:
        def created() -> Job:
            known = self.jobs.get(job.id)
            if known is None or known.expires_s <= self._now() or self._begins_anew(known, job):
                self._put(replace(job, due_s=job.due_after(job.created_s)))
            return self.jobs[job.id]

        return self._change(created)

    @staticmethod
    def _begins_anew(known: Job, job: Job) -> bool:
        return known.digest == job.digest and known.state in (State.FAILED, State.CANCELLED)

    def get(self, job_id: str) -> Job | None:
        self._faults.maybe()
        return self._live(job_id)

    def get_many(self, job_ids: Sequence[str]) -> dict[str, Job]:
        self._faults.maybe()
        return {each: job for each in job_ids if (job := self._live(each)) is not None}

    def end(self, job: Job, event: Event, reason: str = "") -> Job | None:
        def ended(known: Job) -> Job | None:
            after = step(known.state, event)
            due_s = self._now() + 600.0 if known.push is not None else None
            return (
                replace(known, state=after, reason=reason, due_s=due_s) if after is not known.state else None
            )

        return self._update(job, ended)

    def set_parts(self, job: Job, parts: int) -> Job | None:
        def known(known: Job) -> Job | None:
            return replace(known, parts=parts) if known.parts is None and _is_at_work(known) else None

        return self._update(job, known) or self._same(job)

    def begin_split(self, job: Job, place: SplitPlace) -> None:
        def begun(known: Job) -> Job | None:
            return replace(known, split=place) if known.split is None and _is_at_work(known) else None

        self._update(job, begun)

    def advance(self, job: Job, to: SplitPlace, parts: int | None = None) -> Job | None:
        def moved(known: Job) -> Job | None:
            if not _is_at_work(known) or job.split is None:
                return None
            if known.split != job.split:  # maybe a repeat: a place bears the name of the run that got there
                return known if known.split == to else None
            self.split_starts.pop((job.id, job.generation), None)
            state, due_s = step(known.state, Event.PROGRESS), job.due_after(self._now())
            count = known.parts if parts is None else parts
            return replace(known, split=to, state=state, parts=count, due_s=due_s)

        return self._update(job, moved)

    def add_split_start(self, job: Job, start: str) -> int:
        def added() -> int:
            known = self._same(job)
            if known is None or known.split is None or known.split != job.split:
                return 0
            starts = self.split_starts.setdefault((job.id, job.generation), set())
            starts.add(start)
            return len(starts)

        return self._change(added)

    def remove_split_start(self, job: Job, start: str) -> None:
        self._change(lambda: self.split_starts.get((job.id, job.generation), set()).discard(start))

    def put_result(self, job: Job, result: Result) -> None:
        self._expires_s[_whole(job)] = job.expires_s
        self._change(lambda: self.parts.setdefault(_whole(job), {}).setdefault(result.part, result))

    def add_done(self, job: Job, parts: Sequence[int]) -> Job | None:
        def counted(known: Job) -> Job | None:
            if not _is_at_work(known):
                return None
            return replace(known, done=known.done | frozenset(parts), state=step(known.state, Event.PROGRESS))

        return self._update(job, counted) or self._same(job)

    def results(self, job: Job, first: int) -> Iterator[Result]:
        self._faults.maybe()
        parts = self.parts.get(_whole(job), {})
        return iter([parts[number] for number in sorted(parts) if number >= first])

    def recorded(self, parts: Sequence[PartName]) -> set[PartName]:
        self._faults.maybe()
        return {name for name in parts if name.part in self.parts.get(name[:2], {})}

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

    def set_notified(self, job: Job) -> None:
        self._update(job, lambda known: replace(known, notified=True, due_s=None))

    def due(self, now_s: float) -> Iterator[Job]:
        self._faults.maybe()
        due = [name for name, due_s in self._due.items() if due_s <= now_s]
        return (job for name in due if (job := self._live(name)) is not None)

    def next_due_s(self) -> float:
        """When the sweeper has something to do; infinite where it has nothing."""
        return min(self._due.values(), default=math.inf)

    def postpone(self, job: Job, due_s: float) -> None:
        self._update(job, lambda known: None if known.due_s is None else replace(known, due_s=due_s))

    def delete_expired(self, jobs: bool = True, parts: bool = True) -> None:
        """As DynamoDB does at any time after the expiry, item by item."""
        if jobs:
            self.jobs = {name: job for name, job in self.jobs.items() if job.expires_s > self._now()}
            self._due = {name: due_s for name, due_s in self._due.items() if name in self.jobs}
        if parts:
            self.parts = {
                name: parts for name, parts in self.parts.items() if self._expires_s[name] > self._now()
            }

    def _put(self, job: Job) -> None:
        self.jobs[job.id] = job
        if job.due_s is None:
            self._due.pop(job.id, None)
        else:
            self._due[job.id] = job.due_s

    def _live(self, job_id: str) -> Job | None:
        job = self.jobs.get(job_id)
        return job if job is not None and job.expires_s > self._now() else None

    def _same(self, job: Job) -> Job | None:
        known = self._live(job.id)
        return known if known is not None and known.generation == job.generation else None

    def _update(self, job: Job, change: Callable[[Job], Job | None]) -> Job | None:
        def changed() -> Job | None:
            known = self._same(job)
            after = change(known) if known is not None else None
            if after is not None:
                self._put(after)
            return after

        return self._change(changed)

    def _change(self, change: Callable[[], T]) -> T:
        self._faults.maybe()
        self.writes += 1
        after = change()
        self._faults.maybe()
        return after


def _whole(job: Job) -> tuple[str, str]:
    return job.id, job.generation


def _is_at_work(job: Job) -> bool:
    return not job.state.has_ended


class MemoryObjects:
    """Objects in memory. Those below jobs/ never change: another content under a known key is an error.

    Callers' objects, whose names begin with s3://, change by `change`.
    """

    def __init__(self, faults: Faults | None = None) -> None:
        self.contents: dict[str, bytes] = {}
        self._faults = faults or Faults()

    def put(self, key: str, content: bytes) -> None:
        self._faults.maybe()
        assert self.contents.setdefault(key, content) == content, f"{key} is written twice, differently"

    def change(self, uri: str, content: bytes) -> None:
        """A caller writes an object."""
        assert uri.startswith("s3://")
        self.contents[uri] = content

    def get(self, key: str) -> bytes:
        self._faults.maybe()
        if key not in self.contents:
            raise Unavailable("NoSuchKey")
        return self.contents[key]

    def pin(self, uri: str) -> Pin:
        self._faults.maybe()
        if uri not in self.contents:
            raise BadSource("the source cannot be read: NoSuchKey")
        return Pin(content_digest(self.contents[uri]), len(self.contents[uri]))

    def read_range(self, uri: str, pin: Pin, first: int, last: int) -> bytes:
        if self.pin(uri) != pin:
            raise BadSource("the source was changed while it was read")
        if KILLER.encode() in self.contents[uri][first : last + 1]:
            raise Killed
        return self.contents[uri][first : last + 1]

    def url(self, key: str) -> str:
        return f"https://bucket/{key}"


class MemoryQueue:
    """A standard queue in virtual time: out of order, and at least once.

    life_s: after so long a message is gone, received or not.
    """

    def __init__(
        self,
        time: VirtualTime,
        faults: Faults | None = None,
        visibility_s: float = 60.0,
        life_s: float = math.inf,
    ) -> None:
        self.time = time
        self.failed: list[tuple[str, str]] = []
        self.deliveries = 0
        self.sent = 0
        self._visibility_s = visibility_s
        self._life_s = life_s
        self._faults = faults or Faults()
        self._messages: dict[str, Message] = {}
        self._sent_s: dict[str, float] = {}
        self._visible: list[tuple[float, int, str]] = []
        self._version: dict[str, int] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._messages)

    def send(self, bodies: Sequence[Body]) -> None:
        for number, body in enumerate(bodies):
            if number % _MESSAGES_OF_A_CALL == 0:
                self._faults.maybe()
            self.add(msgspec.json.encode(body).decode())
        self._faults.maybe()

    def add(self, body: str) -> str:
        name = f"m{next(self._numbers)}"
        self.sent += 1
        self._messages[name] = Message(name, name, body, 0)
        self._sent_s[name] = self.time.now_s
        self._show(name, self.time.now_s)
        return name

    def next_s(self) -> float:
        """When the next message is visible; infinite where there is none."""
        while self._visible:
            visible_s, number, name = self._visible[0]
            if name in self._messages and visible_s - self._sent_s[name] > self._life_s:
                self.delete(name)
            if name in self._messages and self._version[name] == number:
                return visible_s
            heapq.heappop(self._visible)
        return math.inf

    def receive(self, most: int) -> list[Message]:
        """Up to so many messages that are visible now; if none is, the time is turned to when one is."""
        if not self:
            return []
        if (next_s := self.next_s()) < math.inf:
            self.time.now_s = max(self.time.now_s, next_s)
        batch: list[Message] = []
        while len(batch) < most and self.next_s() <= self.time.now_s:
            batch.append(self._receive(heapq.heappop(self._visible)[2]))
        return batch

    def _receive(self, name: str) -> Message:
        known = self._messages[name]
        message = replace(known, received=known.received + 1)
        self._messages[name] = message
        self._show(name, self.time.now_s + self._visibility_s)
        self.deliveries += 1
        return message

    def delete(self, name: str) -> None:
        self._messages.pop(name, None)

    def retry_in(self, receipt_handle: str, delay_s: int) -> None:
        self._faults.maybe()
        if receipt_handle in self._messages:
            self._show(receipt_handle, self.time.now_s + delay_s)

    def fail(self, body: str, reason: str) -> None:
        self._faults.maybe()
        self.failed.append((body, reason))

    def _show(self, name: str, visible_s: float) -> None:
        number = next(self._numbers)
        self._version[name] = number
        heapq.heappush(self._visible, (visible_s, number, name))


class Told:
    """Receiver of notices."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.states: dict[str, set[State]] = {}
        self.ends: dict[tuple[str, str], set[State]] = {}
        self._faults = faults or Faults()

    def notify(self, job: Job) -> None:
        self._faults.maybe()
        self.states.setdefault(job.id, set()).add(job.state)
        self.ends.setdefault((job.id, job.generation), set()).add(job.state)


class Echo:
    """A model whose answer is the text itself. A poisoned text is refused, a killer ends the environment.

    version: a deployment changes it, and what is answered with it. text_s: what a text takes of `time`.
    """

    def __init__(
        self, faults: Faults | None = None, time: VirtualTime | None = None, text_s: float = 0.0
    ) -> None:
        self.calls: list[int] = []
        self.texts = 0
        self.version = 1
        self.text_s = text_s
        self._time = time or VirtualTime()
        self._faults = faults or Faults()

    def answer(self, texts: Sequence[str], options: Options, deadline: Deadline) -> Answers:
        self.calls.append(len(texts))
        if KILLER in texts or self._faults.random.random() < self._faults.kills:
            raise Killed
        if POISON in texts:
            raise Invalid("A text is poisoned.")
        needed_s, left_s = len(texts) * self.text_s + texts.count(SLOW) * _SLOW_S, deadline.remaining_s()
        self._time.wait(max(0.0, min(needed_s, left_s)))
        if needed_s > left_s:
            raise OutOfTime("There is too little time.")
        self.texts += len(texts)
        return Answers([answer_to(text, version=self.version) for text in texts], f"v{self.version}")


def answer_to(text: str, index: int = 0, version: int = 1) -> TextAnswer:
    """Answer of a version of `Echo` to a text."""
    return TextAnswer(index, {"auto": HeadAnswer(text, 1.0, [Score(text, version)], 0.0)})


def text_of(answer: TextAnswer) -> str | None:
    """The text that `Echo` answered."""
    return answer.heads["auto"].label


def answers_of(store: MemoryStore, objects: MemoryObjects, job_id: str) -> list[TextAnswer]:
    """All answers of a job, as they are kept, without a fault."""
    job = store.jobs[job_id]
    rows: list[TextAnswer] = []
    for _, result in sorted(store.parts.get(_whole(job), {}).items()):
        content = result.inline or objects.contents[result.key]
        assert content_digest(content) == result.digest
        rows += msgspec.json.decode(content, type=list[TextAnswer])
    return rows
