"""Batches of messages: what is answered together, and what becomes of each that fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from coldframe.errors import NotReady, OutOfTime
from coldframe.jobs.backoff import RetryPolicy
from coldframe.jobs.object_file import Pin
from coldframe.jobs.records import Job, Notify, Options, Part, Push, Source, Split
from coldframe.jobs.states import Event, State
from coldframe.jobs.worker import Answers, Message, Worker
from coldframe.timing import Deadline
from tests.jobs_world import (
    KILLER,
    POISON,
    Echo,
    Faults,
    Killed,
    MemoryObjects,
    MemoryQueue,
    MemoryStore,
    Told,
    answers_of,
    text_of,
)


class Here:
    """A worker and its world. Jobs are named as their first text."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.store = MemoryStore(faults)
        self.objects = MemoryObjects(faults)
        self.queue = MemoryQueue(faults)
        self.told = Told(faults)
        self.echo = Echo(faults)
        self.worker = Worker(
            self.store, self.objects, self.queue, self.told, self.echo, RetryPolicy(), self.now, lambda: 0.5
        )

    def now(self) -> float:
        return self.queue.now_s

    def job(self, *texts: str, **changes: Any) -> Job:
        settings: dict[str, Any] = {"options": Options(), "parts": 1, **changes}
        job = Job(texts[0], texts[0], State.QUEUED, created_s=0.0, expires_s=1e9, **settings)
        self.store.jobs[job.id] = job
        self.queue.send([Part(job.id, 0, 0, list(texts))])
        return job

    def states(self) -> dict[str, State]:
        return {name: job.state for name, job in self.store.jobs.items()}

    def run(self, deadline_s: float = 60.0) -> list[str]:
        messages = self.queue.receive(100)
        again = self.worker.handle(messages, Deadline(deadline_s))
        for message in messages:
            if message.id not in again:
                self.queue.delete(message.id)
        return again


def test_texts_of_all_messages_go_together() -> None:
    """Messages of many jobs are one call of the model; jobs with other options are another."""
    here = Here()
    for number in range(20):
        here.job(f"text {number}", "the same")
    here.job("other", options=Options(top_k=2))
    assert here.run() == []
    assert here.echo.calls == [40, 1]
    assert set(here.states().values()) == {State.DONE}
    rows = answers_of(here.store, here.objects, "text 7")
    assert [(row.index, text_of(row)) for row in rows] == [(0, "text 7"), (1, "the same")]


def test_poison_is_isolated_by_bisection() -> None:
    """One message that cannot be answered fails with its reason; all others are answered in a few calls."""
    here = Here()
    for number in range(63):
        here.job(f"text {number}")
    here.job("bad", POISON)
    assert here.run() == []
    assert here.states() == dict.fromkeys(here.states(), State.DONE) | {"bad": State.FAILED}
    assert here.store.jobs["bad"].reason == "texts 0 to 1: A text is poisoned."
    ((body, reason),) = here.queue.failed
    assert json.loads(body)["job"] == "bad"
    assert reason == "texts 0 to 1: A text is poisoned."
    assert len(here.echo.calls) <= 2 * 6 + 2


def test_a_message_that_ends_its_environment() -> None:
    """It is found out by its starts: all others are done by then, and it fails after so many attempts."""
    here = Here()
    for number in range(9):
        here.job(f"text {number}")
    here.job("bad", KILLER)
    kills = 0
    while len(here.queue):
        try:
            here.run()
        except Killed:
            kills += 1
    assert kills == 1 + RetryPolicy().attempts
    assert here.states() == dict.fromkeys(here.states(), State.DONE) | {"bad": State.FAILED}
    assert "each of 6 attempts ended its environment" in here.store.jobs["bad"].reason
    assert len(here.queue.failed) == 1


class Failing(Echo):
    """Raises an error for a text, so many times."""

    def __init__(self, error: Exception, times: int) -> None:
        super().__init__()
        self._error = error
        self.left = times

    def answer(self, texts: Sequence[str], options: Options, deadline: Deadline) -> Answers:
        if "bad" in texts and self.left:
            self.left -= 1
            raise self._error
        return super().answer(texts, options, deadline)


@pytest.mark.parametrize(("times", "state"), [(3, State.DONE), (100, State.FAILED)])
def test_other_errors_are_tried_again(times: int, state: State) -> None:
    """An error that may pass is tried again, later each time, and has an end."""
    here = Here()
    failing = Failing(RuntimeError("a text that no reason may hold"), times)
    here.worker = replace(here.worker, answerer=failing)
    here.job("bad")
    pauses: list[float] = []
    while len(here.queue):
        before_s = here.now()
        here.run()
        pauses.append(here.now() - before_s)
    assert here.states() == {"bad": state}
    assert pauses == sorted(pauses)
    if state is State.FAILED:
        assert here.store.jobs["bad"].reason == "texts 0 to 0 after 6 attempts: RuntimeError"


@pytest.mark.parametrize("error", [NotReady("no model"), OutOfTime("late")])
def test_the_environments_own_faults(error: Exception) -> None:
    """A model that is missing, or too little time, costs no job its life at once."""
    here = Here()
    here.worker = replace(here.worker, answerer=Failing(error, 1))
    here.job("bad")
    assert len(here.run()) == 1
    assert here.states() == {"bad": State.RUNNING}
    assert here.run() == []
    assert here.states() == {"bad": State.DONE}


def test_an_outage_is_waited_for() -> None:
    """While the store fails, messages go back; their attempts are not used up, but their age is bounded."""
    faults = Faults(fails=0.0)
    here = Here(faults)
    here.job("text")
    faults.fails = 1.0
    for _ in range(20):
        assert len(here.run()) == 1
    faults.fails = 0.0
    assert here.run() == []
    assert here.states() == {"text": State.DONE}
    here.job("old")
    faults.fails = 1.0
    while here.now() < 20_000:
        here.run()
    faults.fails = 0.0
    here.run()
    assert here.states()["old"] is State.FAILED
    assert "too old" in here.store.jobs["old"].reason


@pytest.mark.parametrize("body", ["", "no json", '{"type": "other"}', '{"type": "part", "job": 1}', "[]"])
def test_what_is_no_message(body: str) -> None:
    """Whatever else is in the queue ends in the queue of failed messages."""
    here = Here()
    here.queue.add(body)
    assert here.run() == []
    assert here.queue.failed == [(body, "the message is none of a job")]


def test_unknown_jobs() -> None:
    """So does a message whose job has expired."""
    here = Here()
    here.queue.send([Part("gone", 0, 0, ["text"])])
    assert here.run() == []
    assert here.queue.failed[0][1] == "its job is not known, or has expired"


def test_cancelled_jobs() -> None:
    """What is cancelled is not answered, and stays cancelled; who asked for it is told."""
    here = Here()
    job = here.job("text", push=Push(sns=True))
    here.store.apply(job.id, Event.CANCEL)
    while len(here.queue):
        here.run()
    assert here.states() == {"text": State.CANCELLED}
    assert here.echo.calls == []
    assert here.told.states == {"text": {State.CANCELLED}}


def test_a_source_is_divided() -> None:
    """An object becomes parts, these become answers in the order of its lines."""
    here = Here()
    lines = [f"text {number}" for number in range(1234)]
    here.objects.contents["s3://ours/in.csv"] = "\n".join(
        ["id,text", *(f"1,{line}" for line in lines)]
    ).encode()
    source = Source("s3://ours/in.csv", "csv")
    here.store.jobs["j"] = Job("j", "j", State.QUEUED, Options(), 0.0, 1e9, source)
    here.queue.send([Split("j"), Split("j")])
    while len(here.queue):
        here.run()
    job = here.store.jobs["j"]
    assert (job.state, job.parts, job.done) == (State.DONE, 3, 3)
    rows = answers_of(here.store, here.objects, "j")
    assert [(row.index, text_of(row)) for row in rows] == list(enumerate(lines))


def test_a_source_that_cannot_be_read() -> None:
    """The job fails, and says why."""
    here = Here()
    here.store.jobs["j"] = Job("j", "j", State.QUEUED, Options(), 0.0, 1e9, Source("s3://ours/no", "jsonl"))
    here.queue.send([Split("j")])
    assert here.run() == []
    assert here.store.jobs["j"].reason == "the source cannot be read: NoSuchKey"


class Bursting(MemoryObjects):
    """Objects whose content ends in an error that nobody thought of."""

    def read_range(self, uri: str, pin: Pin, first: int, last: int) -> bytes:
        raise MemoryError("a text that no reason may hold")


def test_an_unexpected_error_of_a_source_is_its_own() -> None:
    """What came with it is answered at once. The source is tried again, and then given up with its reason."""
    here = Here()
    here.worker = replace(here.worker, objects=Bursting())
    here.worker.objects.put("s3://ours/in", b'"a"')
    here.store.jobs["j"] = Job("j", "j", State.QUEUED, Options(), 0.0, 1e9, Source("s3://ours/in", "jsonl"))
    here.queue.send([Split("j")])
    here.job("other")
    tries = 0
    while len(here.queue):
        here.run()
        tries += 1
        assert here.states()["other"] is State.DONE
        here.queue.now_s += 1000
    assert tries == RetryPolicy().attempts
    assert here.states()["j"] is State.FAILED
    assert here.store.jobs["j"].reason == "its source could not be read: MemoryError"


def test_large_answers_are_objects() -> None:
    """Answers that a record would not hold are kept as an object, named by its content."""
    here = Here()
    here.job("x" * 40_000)
    here.run()
    (result,) = here.store.parts["x" * 40_000].values()
    assert result.key.endswith(f"00000-{result.digest}.json")
    assert result.inline == b""


def test_messages_are_read_back() -> None:
    """A message is what was sent."""
    from coldframe.jobs.records import read_body

    for body in (Part("j", 1, 2, ["a"], "k"), Split("j"), Notify("j")):
        assert read_body(msgspec.json.encode(body).decode()) == body


def test_many_threads() -> None:
    """With the store's calls at the same time a batch is the same."""
    from concurrent.futures import ThreadPoolExecutor

    here = Here()
    with ThreadPoolExecutor(8) as pool:
        here.worker = replace(here.worker, map_all=pool.map)
        for number in range(90):
            here.job(f"text {number}")
        for number in range(10):
            here.queue.send([Part(f"gone {number}", 0, 0, ["text"])])
        assert here.run() == []
    assert set(here.states().values()) == {State.DONE}
    assert len(here.queue.failed) == 10


def test_delays() -> None:
    """A pause grows, is never longer than it may be, and is spread."""
    policy = RetryPolicy()
    assert [policy.delay_s(n, lambda: 1.0) for n in (1, 2, 3, 9, 1000)] == [2, 4, 8, 300, 300]
    assert policy.delay_s(9, lambda: 0.0) == 150
    assert msgspec.structs.replace(policy, first_s=0.0).delay_s(1, lambda: 0.0) == 1


def test_received_message() -> None:
    """A message knows what SQS says of it."""
    assert Message("m", "h", "b").received == 1
