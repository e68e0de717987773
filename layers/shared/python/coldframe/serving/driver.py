"""Threads of a device: each gets passes from the scheduler, runs them, and hands out the results."""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from coldframe.errors import NotReady
from coldframe.model.encoder import RowEncoder
from coldframe.model.tokenizer import Window
from coldframe.scheduling.jobs import Job, Outcome, Refusal, Work
from coldframe.scheduling.limits import Limits
from coldframe.scheduling.passes import Pass
from coldframe.scheduling.scheduler import Run
from coldframe.scheduling.stats import Stats
from coldframe.timing import Clock, MovingAverage
from coldframe.vectors import Vector

_CLOSED = "This server is stopping. Send the request again: another server will answer."
_BROKEN = "A device's thread of this server has ended with an error. Send the request to another server."


class Ticket:
    """The rows of one request at one encoder, and their embeddings so far.

    embeddings: one per row, None before it is encoded. error: error of the failed pass.
    Drivers write until the job ends; the waiting thread reads after that.
    """

    def __init__(self, rows: Sequence[Window]) -> None:
        self.rows = rows
        self.embeddings: list[Vector | None] = [None] * len(rows)
        self.passes = 0
        self.outcome = Outcome.CANCELLED
        self.error: Exception | None = None
        self._ended = threading.Lock()  # a tenth of an Event's cost, and each request needs one
        self._ended.acquire()

    def wait(self) -> Outcome:
        """Waits until the job has ended, and returns how."""
        with self._ended:
            return self.outcome

    def end(self, outcome: Outcome) -> None:
        """Wakes the thread that waits."""
        self.outcome = outcome
        self._ended.release()


class PassQueue(Protocol):
    """Chooses the next rows to run: `Scheduler`, or a policy compared with it. Not safe for threads."""

    limits: Limits

    @property
    def is_idle(self) -> bool: ...

    def offer(self, work: Work, now_s: float) -> Job | Refusal: ...

    def next_run(self, now_s: float) -> Run | None: ...

    def rest_s(self, now_s: float) -> float | None: ...

    def finish(self, run: Run, now_s: float, failed: bool = False) -> None: ...

    def cancel(self, job: Job) -> None: ...

    def take_ended(self) -> Sequence[tuple[Job, Outcome]]: ...

    def stats(self, now_s: float) -> Stats: ...


class Driver:
    """The scheduler of a device, and threads that run its passes. Safe for threads.

    encoders: run passes, by name. If a pass raises, the request whose row failed fails; rows of other
    requests are computed again, and the thread continues. An error of the scheduler is a defect and ends all
    work here: every
    request fails, and `check` raises.
    """

    def __init__(
        self,
        scheduler: PassQueue,
        encoders: Mapping[str, RowEncoder],
        ms_per_token: Mapping[str, MovingAverage],
        clock: Clock = time.monotonic,
    ) -> None:
        """ms_per_token: time of passes, for the choice between computing and a cache lookup."""
        self._scheduler = scheduler
        self._encoders = encoders
        self._ms_per_token = ms_per_token
        self._clock = clock
        lock = threading.Lock()
        self._changed = threading.Condition(lock)
        self._idle = threading.Condition(
            lock
        )  # separate: a worker that it woke would have to wake the next one
        self._tickets: dict[Job, Ticket] = {}
        self._is_closed = False
        self._error: Exception | None = None
        workers = range(scheduler.limits.workers)
        self._threads = [
            threading.Thread(target=self._drive, name=f"passes-{n}", daemon=True) for n in workers
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Work, ticket: Ticket) -> Job | Refusal:
        """Admits work, whose results its ticket gets, or refuses it. Raises NotReady after `close`."""
        with self._changed:
            self.check()
            if self._is_closed:
                raise NotReady(_CLOSED)
            answer = self._scheduler.offer(work, self._clock())
            if isinstance(answer, Job):
                self._tickets[answer] = ticket
                self._changed.notify()
            return answer

    def check(self) -> None:
        """Raises NotReady once a thread has ended with an error: this process serves no more."""
        if self._error is not None:
            raise NotReady(_BROKEN) from self._error

    def now_s(self) -> float:
        """Now, by the clock of deadlines in `Work`."""
        return self._clock()

    def cancel(self, job: Job) -> None:
        """Cancels a job without a waiting caller, unless it has ended, and its later rounds."""
        with self._changed:
            if self._error is None:
                self._scheduler.cancel(job)
                self._hand_out()

    def stats(self) -> Stats:
        """Counters so far, and the current state."""
        with self._changed:
            return Stats() if self._error is not None else self._scheduler.stats(self._clock())

    def drain(self, timeout_s: float) -> bool:
        """Waits until nothing waits and nothing runs. Returns whether that happened in time."""
        with self._idle:
            return self._idle.wait_for(lambda: self._scheduler.is_idle, timeout_s)

    def close(self) -> None:
        """Cancels waiting work, refuses new work, and ends the threads once their passes have ended."""
        with self._changed:
            self._is_closed = True
            if self._error is None:
                for job in list(self._tickets):
                    self._scheduler.cancel(job)
                self._hand_out()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _drive(self) -> None:
        """Body of each thread. If one ends with an error, all end."""
        try:
            self._run_passes()
        except Exception as exc:
            with self._changed:
                self._break(exc)

    def _break(self, error: Exception) -> None:
        """Fails every request, and ends the other threads, without calling the failed scheduler again."""
        self._error = self._error or error
        self._is_closed = True
        for ticket in self._tickets.values():
            ticket.error = NotReady(_BROKEN)
            ticket.end(Outcome.FAILED)
        self._tickets.clear()
        self._changed.notify_all()

    def _run_passes(self) -> None:
        """One pass after another, until the driver is closed."""
        while (run := self._next_run()) is not None:
            tickets, planned = run.tickets, run.run.planned
            began_s = self._clock()
            error = self._encode(planned, tickets)
            taken_s = self._clock() - began_s
            with self._changed:
                if self._error is not None:
                    return
                for ticket in tickets:
                    ticket.passes += 1
                    ticket.error = error or ticket.error
                if error is None:
                    self._ms_per_token[planned.group.encoder].add(taken_s * 1e3 / planned.tokens)
                self._scheduler.finish(run.run, self._clock(), failed=error is not None)
                self._hand_out()

    def _next_run(self) -> "_TicketedRun | None":
        """Waits for a pass to begin; None once the driver is closed."""
        with self._changed:
            while self._error is None:
                run = self._scheduler.next_run(self._clock())
                self._hand_out()  # to requests that the scheduler has just refused as too late
                if run is not None:
                    parts: dict[Ticket, list[int]] = {}
                    for job, row in run.planned.entries:
                        parts.setdefault(self._tickets[job], []).append(row)
                    return _TicketedRun(run, parts)
                if self._is_closed:
                    return None
                self._changed.wait(self._scheduler.rest_s(self._clock()))
            return None

    def _encode(self, planned: Pass, tickets: Mapping[Ticket, Sequence[int]]) -> Exception | None:
        """Runs a pass and writes its embeddings into the tickets. Returns the error it raised, if any."""
        rows = [ticket.rows[row] for ticket, numbers in tickets.items() for row in numbers]
        try:
            embeddings = self._encoders[planned.group.encoder].encode(rows)
            places = ((ticket, row) for ticket, numbers in tickets.items() for row in numbers)
            for (ticket, row), embedding in zip(places, embeddings, strict=True):
                ticket.embeddings[row] = embedding
        except Exception as exc:  # the thread survives any error of a pass
            return exc
        return None

    def _hand_out(self) -> None:
        for job, outcome in self._scheduler.take_ended():
            self._tickets.pop(job).end(outcome)
        if self._scheduler.is_idle:
            self._idle.notify_all()


@dataclass(frozen=True)
class _TicketedRun:
    """A pass that has begun, and the rows of each ticket in it."""

    run: Run
    tickets: Mapping[Ticket, Sequence[int]]
