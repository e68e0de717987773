"""Batches of messages: what is answered together, and what becomes of each that fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import msgspec
import pytest

from coldframe.errors import NotReady, OutOfTime
from coldframe.jobs.backoff import RetryPolicy
from coldframe.jobs.ports import Unavailable
from coldframe.jobs.records import Job, Notify, Options, Part, PartName, Push, Split, read_control, read_part
from coldframe.jobs.states import Event, State
from coldframe.jobs.worker import NOT_OURS, Answers, Message, Worker
from coldframe.telemetry.spans import spans_of
from coldframe.timing import Deadline
from tests.support.jobs_world import (
    KILLER,
    POISON,
    Echo,
    Faults,
    Killed,
    MemoryObjects,
    MemoryQueue,
    MemoryStore,
    VirtualTime,
    answers_of,
    text_of,
)

TIMEOUT_S, VISIBILITY_S = 110.0, 180.0


class Here:
    """A worker and its world, with the deployed times. Jobs are named as their first text."""

    def __init__(self, faults: Faults | None = None, text_s: float = 0.0) -> None:
        self.time = VirtualTime()
        self.store = MemoryStore(faults, self.time)
        self.objects = MemoryObjects(faults)
        self.queue = MemoryQueue(self.time, faults, VISIBILITY_S)
        self.control = MemoryQueue(self.time, faults)
        self.echo = Echo(faults, self.time, text_s)
        self.worker = Worker(
            self.store,
            self.objects,
            self.queue,
            self.control,
            self.echo,
            RetryPolicy(),
            lambda: 0.5,
            pause=self.time.wait,
        )
        if not text_s:
            self.worker.pace.add(1000, 0.07)  # it has answered before

    def job(self, *texts: str, parts: int = 1, **changes: Any) -> Job:
        settings: dict[str, Any] = {"options": Options(), "parts": parts, **changes}
        job = Job(texts[0], "g", texts[0], State.QUEUED, created_s=0.0, expires_s=1e9, **settings)
        self.store.jobs[job.id] = job
        share = -(-len(texts) // parts)
        self.queue.send(
            [Part(job.id, "g", n, n * share, list(texts[n * share : (n + 1) * share])) for n in range(parts)]
        )
        return job

    def states(self) -> dict[str, State]:
        return {name: job.state for name, job in self.store.jobs.items()}

    def run(self) -> list[str]:
        messages = self.queue.receive(100)
        again = self.worker.handle(messages, Deadline(TIMEOUT_S, self.time))
        for message in messages:
            if message.id not in again:
                self.queue.delete(message.id)
        return again

    def run_all(self) -> int:
        """Runs until nothing is left, through kills. Returns how many kills."""
        kills = 0
        while len(self.queue):
            try:
                self.run()
            except Killed:
                kills += 1
        return kills


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
    kills = here.run_all()
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
        before_s = here.time.now_s
        here.run()
        pauses.append(here.time.now_s - before_s)
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
    assert here.states() == {"bad": State.QUEUED}
    assert here.run() == []
    assert here.states() == {"bad": State.DONE}


def test_an_outage_is_waited_for() -> None:
    """While the store fails, messages go back. No attempt is used up, and its end is the end of it."""
    faults = Faults(fails=0.0)
    here = Here(faults)
    here.job("text")
    faults.fails = 1.0
    while here.time.now_s < 20_000:
        assert len(here.run()) == 1
    faults.fails = 0.0
    assert here.run() == []
    assert here.states() == {"text": State.DONE}


def test_texts_that_are_never_there() -> None:
    """A message whose own service fails a hundred times, for hours, is given up."""
    here = Here()
    here.job("bad")
    (message,) = here.queue.receive(1)
    here.queue.delete(message.id)
    here.queue.add(json.dumps(json.loads(message.body) | {"key": "jobs/none", "texts": []}))
    here.run_all()
    assert here.store.jobs["bad"].reason.endswith("a service was not available in 100 attempts")
    assert here.time.now_s > 4 * 3600.0


def test_a_backlog_is_no_failure() -> None:
    """A message that was received often, and long ago, meets its first failure as a new one does."""
    here = Here()
    here.worker = replace(here.worker, answerer=Failing(NotReady("no model"), 1))
    here.job("bad")
    for _ in range(200):
        here.queue.receive(1)
    assert here.time.now_s > 30_000.0
    assert len(here.run()) == 1
    here.run_all()
    assert here.states() == {"bad": State.DONE}


def test_one_hiccup_costs_no_batch() -> None:
    """Reads that fail once are repeated at once: no message of the batch is received again."""

    class Hiccup(MemoryStore):
        failed: ClassVar[set[str]] = set()

        def get_many(self, job_ids: Sequence[str]) -> dict[str, Job]:
            self._fail_once("get_many")
            return super().get_many(job_ids)

        def recorded(self, parts: Sequence[PartName]) -> set[PartName]:
            self._fail_once("recorded")
            return super().recorded(parts)

        def _fail_once(self, name: str) -> None:
            if name not in self.failed:
                self.failed.add(name)
                raise Unavailable("Throttled")

    here = Here()
    store = Hiccup(now=here.time)
    here.worker = replace(here.worker, store=store)
    for number in range(20):
        store.jobs[str(number)] = here.job(str(number))
    assert here.run() == []
    assert (here.echo.calls, store.failed) == ([20], {"get_many", "recorded"})


def test_the_first_group_is_one_message() -> None:
    """An environment that has answered nothing yet learns from one message how many more fit."""
    here = Here(text_s=0.1)
    for number in range(20):
        here.job(f"text {number}")
    assert here.run() == []
    assert here.echo.calls == [1, 19]


@pytest.mark.parametrize(("parts", "part_s"), [(2000, 8.0), (400, 30.0), (500, 0.5), (40, 100.0)])
def test_lateness_is_no_attempt(parts: int, part_s: float) -> None:
    """Parts of any length that fits are all answered, in no more time than they take, half as much again."""
    here = Here(text_s=part_s)
    here.job(*(f"text {number}" for number in range(parts)), parts=parts)
    assert here.run_all() == 0
    job = here.store.jobs["text 0"]
    assert (job.state, len(job.done), here.queue.failed) == (State.DONE, parts, [])
    assert here.echo.texts == parts
    assert here.time.now_s < 1.5 * parts * part_s


def test_what_takes_too_long_alone() -> None:
    """A part that cannot be answered in all the time that there is fails after its attempts, and says so."""
    here = Here(text_s=TIMEOUT_S + 1.0)
    here.job("long")
    here.run_all()
    reason = "texts 0 to 0 after 6 attempts: there was too little time to encode them. Send smaller parts"
    assert here.store.jobs["long"].reason == reason


def test_a_complete_group_is_recorded() -> None:
    """A batch that is too much for its time keeps what it has answered: nothing is computed twice."""
    here = Here(text_s=2.0)
    here.job(*(f"text {number}" for number in range(100)), parts=100)
    again = here.run()
    assert 0 < len(again) < 100
    assert len(here.store.jobs["text 0"].done) == 100 - len(again)
    here.run_all()
    assert here.echo.texts == 100


def test_one_write_counts_all_parts_of_a_job() -> None:
    """A batch writes each part's result, and then each job once, however many parts of it there are."""
    here = Here()
    here.job(*(f"text {number}" for number in range(50)), parts=50)
    before = here.store.writes
    here.run()
    assert here.store.writes - before == 50 + 1 + 1  # and the end


def test_a_kill_between_result_and_count() -> None:
    """A part that has its result and was not counted is counted when its message comes again."""

    class Dying(MemoryStore):
        def add_done(self, job: Job, parts: Sequence[int]) -> Job | None:
            raise Killed

    here = Here()
    job = here.job("a", "b", parts=2)
    dying = Dying(now=here.time)
    dying.jobs, dying.parts = here.store.jobs, here.store.parts
    alive, here.worker = here.worker, replace(here.worker, store=dying)
    with pytest.raises(Killed):
        here.run()
    here.worker = alive
    here.run_all()
    assert here.store.jobs[job.id].state is State.DONE
    assert here.echo.texts == 2


@pytest.mark.parametrize("body", ["", "no json", '{"type": "other"}', '{"type": "part", "job": 1}', "[]"])
def test_what_is_no_message(body: str) -> None:
    """Whatever else is in the queue ends in the queue of failed messages."""
    here = Here()
    here.queue.add(body)
    assert here.run() == []
    assert here.queue.failed == [(body, NOT_OURS)]


def test_messages_of_no_job() -> None:
    """A message of a job that has expired or begun anew is over, and its texts are kept nowhere."""
    here = Here()
    here.job("text")
    here.queue.send([Part("gone", "g", 0, 0, ["a"]), Part("text", "before", 0, 0, ["b"])])
    assert here.run() == []
    assert here.queue.failed == []
    assert [text_of(row) for row in answers_of(here.store, here.objects, "text")] == ["text"]


def test_cancelled_jobs() -> None:
    """A cancelled job is not answered, and stays cancelled."""
    here = Here()
    job = here.job("text", push=Push(sns=True))
    here.store.end(job, Event.CANCEL)
    assert here.run() == []
    assert (here.states(), here.echo.calls) == ({"text": State.CANCELLED}, [])


@pytest.mark.parametrize("text", ["text", POISON])
def test_an_end_is_notified_once(text: str) -> None:
    """A job's end is one message, whoever else has parts of it."""
    here = Here()
    here.job(text, *"abcdefg", parts=4, push=Push(sns=True))
    here.run_all()
    assert here.states()[text].has_ended
    assert here.control.sent == 1


def test_large_answers_are_objects() -> None:
    """Answers that a record would not hold are kept as an object, named by its content."""
    here = Here()
    job = here.job("x" * 40_000)
    here.run()
    (result,) = here.store.results(job, 0)
    assert result.key.endswith(f"/g/answers/00000-{result.digest}.json")
    assert result.inline == b""


def test_messages_are_read_back() -> None:
    """A message is what was sent."""
    part = Part("j", "g", 1, 2, ["a"], "k")
    assert read_part(msgspec.json.encode(part).decode()) == part
    for body in (Split("j", "g"), Notify("j", "g")):
        assert read_control(msgspec.json.encode(body).decode()) == body


def test_many_threads() -> None:
    """A batch is the same with the store's calls at the same time."""
    from concurrent.futures import ThreadPoolExecutor

    here = Here()
    with ThreadPoolExecutor(8) as pool:
        here.worker = replace(here.worker, map_all=pool.map)
        for number in range(90):
            here.job(f"text {number}")
        for number in range(10):
            here.queue.add(f"no message {number}")
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


HEADER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0"


def test_work_continues_the_trace_of_the_request_that_started_its_job() -> None:
    """Each traced job of a batch has a line with spans; lines hold no text, and other jobs have none."""
    here, lines = Here(), list[str]()
    here.worker = replace(here.worker, trace_log=lines.append)
    here.job("first secret", "second", parts=2, traceparent=HEADER + "1")
    here.job("unsampled", traceparent=HEADER + "0")
    here.job("untraced")
    here.job("bad", POISON, traceparent=HEADER + "1")
    assert here.run() == []
    first, unsampled, bad = (json.loads(line) for line in lines)
    assert (first["event"], first["messages"]) == ("job", 2)
    assert first["trace_id"] == bad["trace_id"] == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert first["parent_span_id"] == "00f067aa0ba902b7"
    assert len({line["span_id"] for line in (first, unsampled, bad)}) == 3
    assert (unsampled["sampled"], "spans_ms" in unsampled) == (False, False)
    names = [span.name for span in spans_of(lines[0])]
    assert names[0] == "process job"
    assert set(names[1:]) == {"answer", "record"}
    assert all(spans_of(line)[0].start_ns <= spans_of(line)[0].end_ns for line in (lines[0], lines[2]))
    assert POISON not in "".join(lines)


def test_without_traces_a_worker_logs_nothing() -> None:
    """A job that was started with a trace is answered by a worker that writes none."""
    here = Here()
    here.job("first", traceparent=HEADER + "1")
    assert here.run() == []
    assert here.states() == {"first": State.DONE}
