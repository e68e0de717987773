"""Whole jobs: sources that are divided, ends that are notified, and the sweep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from coldframe.jobs.backoff import RetryPolicy
from coldframe.jobs.control import Controller
from coldframe.jobs.object_file import Pin
from coldframe.jobs.ports import BadSource, Unavailable
from coldframe.jobs.records import (
    MAX_PARTS,
    PART_TEXTS,
    Job,
    Notify,
    Options,
    Push,
    Source,
    Split,
    SplitPlace,
    read_part,
)
from coldframe.jobs.splitting import LOT_PARTS
from coldframe.jobs.states import Event, State, state_after
from coldframe.jobs.worker import Message
from coldframe.timing import Deadline
from tests.support.jobs_world import (
    KILLER,
    Faults,
    Killed,
    MemoryObjects,
    MemoryQueue,
    MemoryStore,
    Told,
    VirtualTime,
)
from tests.support.jobs_world import (
    replace as changed,
)

URI = "s3://ours/in.jsonl"
DAY_S = 86_400.0


class Here:
    """A controller and its world. read_s: what reading a range of a source takes."""

    def __init__(self, read_s: float = 0.0) -> None:
        self.time = VirtualTime()
        self.faults = Faults()
        self.store = MemoryStore(self.faults, self.time)
        self.objects = Timed(self.time, read_s)
        self.parts = MemoryQueue(self.time)
        self.control = MemoryQueue(self.time, visibility_s=180.0)
        self.told = Told()
        self.controller = Controller(
            self.store,
            self.objects,
            self.parts,
            self.control,
            self.told,
            RetryPolicy(),
            self.time,
            lambda: 0.5,
            pause=self.time.wait,
        )

    def source(self, content: bytes, name: str = "j", **changes: Any) -> Job:
        """A job whose source is to be divided."""
        uri = f"s3://ours/{name}.jsonl"
        self.objects.contents[uri] = content
        fields: dict[str, Any] = {"source": Source(uri, "jsonl"), "pin": self.objects.pin(uri), **changes}
        job = Job(name, "g", name, State.QUEUED, Options(), 0.0, 7 * DAY_S, **fields)
        self.store.create(job)
        self.control.send([Split(name, "g")])
        return job

    def run(self) -> bool:
        """One message. Whether it is over."""
        (message,) = self.control.receive(1)
        is_over = self.controller.handle(message, Deadline(110.0, self.time))
        if is_over:
            self.control.delete(message.id)
        return is_over

    def run_all(self) -> int:
        """Until nothing is left, through kills. Returns how many kills."""
        kills = 0
        while len(self.control):
            try:
                self.run()
            except Killed:
                kills += 1
        return kills

    def texts(self, name: str = "j") -> list[str]:
        """All texts of a job's parts, in order. A part may be sent twice."""
        parts = [read_part(each.body) for each in self.parts.receive(10_000)]
        keys = {part.name: part.key for part in parts}
        found: list[str] = []
        for part in sorted(keys):
            if part.job == name:
                found += [
                    text.strip('"') for text in self.objects.contents[keys[part]].decode()[1:-1].split(",")
                ]
        return found


class Timed(MemoryObjects):
    """Objects that take virtual time to read, and end the environment for a killer."""

    def __init__(self, time: VirtualTime, read_s: float) -> None:
        super().__init__()
        self._time = time
        self._read_s = read_s

    def read_range(self, uri: str, pin: Pin, first: int, last: int) -> bytes:
        self._time.wait(self._read_s)
        return super().read_range(uri, pin, first, last)


def lines(texts: int, width: int = 0) -> tuple[bytes, list[str]]:
    """A source of so many texts, and the texts."""
    wanted = [f"text {number}".ljust(width, "x") for number in range(texts)]
    return "\n".join(f'"{text}"' for text in wanted).encode(), wanted


@pytest.mark.parametrize("texts", [1, PART_TEXTS, LOT_PARTS * PART_TEXTS, 3 * LOT_PARTS * PART_TEXTS + 1])
def test_a_source_is_divided(texts: int) -> None:
    """A source becomes parts in its order, whose number is known at the end."""
    here = Here()
    content, wanted = lines(texts)
    here.source(content)
    assert here.run_all() == 0
    job = here.store.jobs["j"]
    assert (job.state, job.parts) == (State.RUNNING, -(-texts // PART_TEXTS))
    assert here.parts.sent == job.parts
    assert here.texts() == wanted


def test_a_large_source_takes_several_invocations() -> None:
    """A run ends before its deadline, and the next one resumes where it came to: no lot is sent twice."""
    here = Here(read_s=20.0)  # of 1 MB: about a lot
    content, wanted = lines(8_000, width=1_000)
    here.source(content)
    here.run_all()
    assert here.control.deliveries > 3
    assert here.parts.sent == here.store.jobs["j"].parts
    assert here.texts() == wanted


def test_a_source_that_ends_its_environment() -> None:
    """It fails after its attempts, with the text that it came to. Nobody else waits for it."""
    here = Here()
    here.source(b'"' + KILLER.encode() + b'"', "bad")
    for number in range(9):
        here.source(f'"{number}"'.encode(), f"good {number}")
    kills = here.run_all()
    assert kills == RetryPolicy().attempts
    job = here.store.jobs["bad"]
    assert job.reason == "the source, from text 0: each of 6 attempts ended its environment"
    assert all(here.store.jobs[f"good {number}"].parts == 1 for number in range(9))
    assert here.time.now_s < 180.0 * (kills + 1)


def test_starts_are_counted_from_each_place() -> None:
    """A run that came further has its attempts anew: a source may meet more kills than a place may."""

    class Dying(MemoryQueue):
        def send(self, bodies: Any) -> None:
            super().send(bodies)
            if self.sent % (3 * LOT_PARTS):
                return
            raise Killed

    here = Here()
    content, wanted = lines(30 * LOT_PARTS * PART_TEXTS)
    here.parts = Dying(here.time)
    here.controller = replace(here.controller, parts=here.parts)
    here.source(content)
    assert here.run_all() > RetryPolicy().attempts
    assert here.store.jobs["j"].parts == 30 * LOT_PARTS
    assert here.texts() == wanted


def test_of_two_runs_one_stops() -> None:
    """Two messages of one job divide it once: who finds it moved on stops."""
    here = Here()
    content, wanted = lines(5 * LOT_PARTS * PART_TEXTS)
    job = here.source(content)
    here.store.begin_split(job, SplitPlace())
    send, others = here.parts.send, list[Message]()

    def send_and_meet(bodies: Any) -> None:
        send(bodies)
        if not others:
            here.control.send([Split("j", "g")])
            others.append(here.control.receive(1)[0])
            assert here.controller.handle(others[0], Deadline(110.0, here.time))

    here.parts.send = send_and_meet  # type: ignore[method-assign]
    assert here.run()
    assert here.parts.sent == 5 * LOT_PARTS + LOT_PARTS  # the one lot that both sent
    assert here.texts() == wanted


@pytest.mark.parametrize("event", [Event.CANCEL, Event.FAIL])
def test_a_job_that_ends_stops_its_split(event: Event) -> None:
    """The lot that is under way is the last one."""
    here = Here()
    job = here.source(lines(10 * LOT_PARTS * PART_TEXTS)[0])
    send = here.parts.send

    def send_and_end(bodies: Any) -> None:
        send(bodies)
        here.store.end(job, event)

    here.parts.send = send_and_end  # type: ignore[method-assign]
    here.run_all()
    assert here.parts.sent == LOT_PARTS
    assert here.store.jobs["j"].parts is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "has no texts"),
        (b"{", "line 1 of the source is not JSON"),
        (lines(10 * PART_TEXTS * LOT_PARTS)[0] + b"\n{", "line 50001 of the source is not JSON"),
    ],
)
def test_spoilt_sources(content: bytes, said: str) -> None:
    """A source that cannot be read fails its job, with the line."""
    here = Here()
    here.source(content)
    here.run_all()
    job = here.store.jobs["j"]
    assert (job.state, said in job.reason) == (State.FAILED, True), job.reason


def test_a_source_that_changes() -> None:
    """A job answers for one version of its source: another one fails it, also between two runs."""
    here = Here(read_s=30.0)
    content, _ = lines(8_000, width=1_000)
    job = here.source(content)
    assert job.source is not None
    here.run()
    here.run()
    assert here.parts.sent
    here.objects.change(job.source.s3, b'"other"')
    here.run_all()
    assert here.store.jobs["j"].reason == "the source was changed while it was read"


def test_huge_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source of more parts than a job may have is refused with what to do instead."""
    monkeypatch.setattr("coldframe.jobs.splitting.MAX_PARTS", 2)
    here = Here()
    here.source(lines(3 * PART_TEXTS)[0])
    here.run_all()
    assert f"more than {MAX_PARTS} parts" in here.store.jobs["j"].reason


def test_an_unexpected_error_of_a_source_is_its_own() -> None:
    """It is tried again, and then given up with the error's type alone."""

    class Bursting(Timed):
        def read_range(self, uri: str, pin: Pin, first: int, last: int) -> bytes:
            raise MemoryError("a text that no reason may hold")

    here = Here()
    here.source(b'"a"')
    here.controller = replace(here.controller, objects=Bursting(here.time, 0.0))
    here.run_all()
    reason = here.store.jobs["j"].reason
    assert reason == "the source, from text 0: it could not be read (MemoryError)"


def test_an_outage_is_no_attempt() -> None:
    """A service that fails is waited for, for as long as the policy says."""

    class Away(Timed):
        is_away = True

        def read_range(self, uri: str, pin: Pin, first: int, last: int) -> bytes:
            if self.is_away:
                raise Unavailable("SlowDown")
            return super().read_range(uri, pin, first, last)

    here = Here()
    away = Away(here.time, 0.0)
    here.objects = away
    here.controller = replace(here.controller, objects=away)
    here.source(b'"a"')
    while here.time.now_s < 3 * 3600.0:
        assert not here.run()
    away.is_away = False
    here.run_all()
    assert here.store.jobs["j"].parts == 1
    here.source(b'"a"', "other")
    away.is_away = True
    here.run_all()
    assert "a service was not available (SlowDown)" in here.store.jobs["other"].reason


def test_messages_of_no_job() -> None:
    """A message of a job that is gone, or has begun anew, is over. What is no message has failed."""
    here = Here()
    here.source(b'"a"')
    here.run_all()
    here.control.send([Split("gone", "g"), Split("j", "before"), Notify("j", "before"), Notify("j", "g")])
    here.control.add("no message")
    here.run_all()
    assert [body for body, _ in here.control.failed] == ["no message"]
    assert here.told.states == {}


class Deaf(Told):
    """Receiver that is never reached, or refuses."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error
        self.attempts = 0

    def notify(self, job: Job) -> None:
        self.attempts += 1
        raise self.error


def test_a_notice_that_is_refused() -> None:
    """A receiver that refuses a notice is left alone."""
    here = Here()
    deaf = Deaf(BadSource("no"))
    here.controller = replace(here.controller, notifier=deaf)
    job = here.source(b"{", push=Push(sns=True))
    here.run_all()
    assert (deaf.attempts, here.control.failed[-1][1]) == (1, "the receiver could not be notified: no")
    assert here.store.jobs[job.id].due_s is None


def test_a_receiver_that_is_away() -> None:
    """A notice is tried again every hour, while its job lives; then it is a failed message."""
    here = Here()
    deaf = Deaf(Unavailable("no"))
    here.controller = replace(here.controller, notifier=deaf)
    job = here.source(b"{", push=Push(sns=True))
    tried = list[int]()
    while here.store.jobs[job.id].due_s is not None:
        here.run_all()
        tried.append(deaf.attempts)
        here.time.now_s += 3_600.0
        here.controller.sweep()
    assert tried == list(range(12, 12 * len(tried) + 1, 12))
    assert 6 * DAY_S < here.time.now_s - 3_600.0 < 7 * DAY_S
    assert [why for _, why in here.control.failed[1:]] == ["the receiver could not be notified: no"]


def test_a_receiver_that_comes_back() -> None:
    """A receiver that was away for a day is notified."""
    here = Here()
    told, here.controller = here.told, replace(here.controller, notifier=Deaf(Unavailable("no")))
    here.source(b"{", push=Push(sns=True))
    here.run_all()
    assert len(here.control) == 0
    here.controller = replace(here.controller, notifier=told)
    here.time.now_s = DAY_S
    here.controller.sweep()
    here.run_all()
    assert told.states == {"j": {State.FAILED}}


def test_the_sweep_ends_what_has_no_message() -> None:
    """A job whose messages are lost is failed once none can be left, and its end is notified."""
    here = Here()
    here.source(b'"a"', push=Push(sns=True))
    here.source(b'"b"', "other")
    here.control.receive(2)
    for message in list(here.control._messages):
        here.control.delete(message)
    here.time.now_s = 4 * DAY_S - 1.0
    assert here.controller.sweep() == 0
    here.time.now_s = 4 * DAY_S
    assert here.controller.sweep() == 2
    assert {job.state for job in here.store.jobs.values()} == {State.FAILED}
    here.run_all()
    assert here.told.states == {"j": {State.FAILED}}
    assert here.controller.sweep() == 0


def test_the_sweep_counts_from_the_last_message() -> None:
    """A job whose split moved on is left alone for as long as its messages live."""
    here = Here()
    here.source(b'"a"')
    here.time.now_s = 2 * DAY_S
    here.run_all()
    here.time.now_s = 5 * DAY_S
    assert here.controller.sweep() == 0
    assert here.store.jobs["j"].state is State.RUNNING


@pytest.mark.parametrize("event", [Event.CANCEL, Event.FINISH])
def test_the_sweep_repeats_notices(event: Event) -> None:
    """A notice that was never sent, as its sender was killed, is sent by the sweep, once an hour at most."""
    here = Here()
    job = here.source(b'"a"', push=Push(sns=True))
    here.run_all()
    here.store.add_done(job, [0])
    here.store.end(job, event)
    assert here.controller.sweep() == 0
    here.time.now_s += 600.0
    assert here.controller.sweep() == 1
    assert here.controller.sweep() == 0
    assert len(here.control) == 1
    here.run_all()
    assert here.told.states == {"j": {state_after(event)}}
    here.time.now_s += 3600.0
    assert here.controller.sweep() == 0


def test_a_job_ends_before_it_expires() -> None:
    """A job that lives for a day is ended while its end can still be read, and notified."""
    here = Here()
    job = changed(here.source(b'"a"'), expires_s=DAY_S)
    assert job.due_after(0.0) == DAY_S - 3600.0
    assert changed(job, expires_s=3600.0).due_after(0.0) == 3240.0
