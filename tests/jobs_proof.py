"""Jobs in virtual time, under kills, failing services and races: none is lost, none is answered wrongly.

    .venv/bin/python -m tests.jobs_proof --jobs 100000 --seed 1

sends requests to the routes, runs both functions with the deployed times, and prints what came of it.
Requests are repeated, also a week later; jobs are cancelled and sent anew; sources change, are poisoned, or
end their environment. In the midst of a call to a service another invocation may run. CI runs a share.
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import itertools
import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast
from unittest import mock

import msgspec

from coldframe.api.jobs_routes import JobsRoutes
from coldframe.api.messages import Request
from coldframe.config import Settings
from coldframe.errors import NotReady
from coldframe.jobs.backoff import RetryPolicy
from coldframe.jobs.control import Controller
from coldframe.jobs.records import PartName, Result, content_digest, read_part
from coldframe.jobs.worker import INLINE_BYTES, Message, Worker
from coldframe.pipeline.models import Models
from coldframe.schemas import TextAnswer
from coldframe.timing import Deadline
from tests.support.jobs_world import (
    KILLER,
    POISON,
    SLOW,
    Echo,
    Faults,
    Killed,
    MemoryObjects,
    MemoryQueue,
    MemoryStore,
    Told,
    VirtualTime,
    text_of,
)

BATCH, PART_TEXTS = 100, 4
TIMEOUT_S, KEPT_S, VISIBILITY_S, SWEEP_S = 120.0, 10.0, 180.0, 300.0
"""As they are deployed. An environment is killed after TIMEOUT_S."""
DAY_S = 86_400.0
_ENVIRONMENTS = 5
_DEPTH = 2  # invocations within invocations


class Manifest(NamedTuple):
    """Facts of a model that the routes read."""

    name: str = "m"
    version: str = "v1"
    default_head: str = "auto"


class Predictor:
    """A model that is never asked: `Echo` answers."""

    manifest = Manifest()

    def check_heads(self, heads: Any) -> None:
        """Every head is there."""


@dataclass
class Proof:
    """Counts of jobs and calls. Each list names jobs that must not be."""

    jobs: int = 0
    done: int = 0
    failed: int = 0
    cancelled: int = 0
    deliveries: int = 0
    invocations: int = 0
    nested: int = 0
    kills: int = 0
    sweeps: int = 0
    passes: int = 0
    texts: int = 0
    answered: int = 0
    virtual_s: float = 0.0
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)


@dataclass
class Caller:
    """Sender of one request, and the end that it expects. uri: of its source, if any."""

    name: str
    texts: list[str]
    expected: str = "done"
    uri: str = ""
    body: bytes = b""
    job: str = ""
    weeks: int = 0
    begins_anew: bool = False


class World:
    """Callers from a seed, both functions, and all that they work on."""

    def __init__(self, jobs: int, seed: int, fails: float, kills: float) -> None:
        self.proof = Proof(jobs=jobs)
        self.time = VirtualTime()
        self.faults = Faults(seed, fails, kills)
        self.random = random.Random(seed + 1)
        self.store = MemoryStore(self.faults, self.time)
        self.objects = MemoryObjects(self.faults)
        queue = {"visibility_s": VISIBILITY_S, "life_s": 4 * DAY_S}
        self.parts = MemoryQueue(self.time, self.faults, **queue)
        self.control = MemoryQueue(self.time, self.faults, **queue)
        self.told = Told(self.faults)
        self.echo = Echo(self.faults, self.time, text_s=0.002)
        self.seen: dict[PartName, Result] = {}
        self.versions: dict[str, list[str]] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._depth = 0
        self._busy: set[str] = set()
        models = Models({"m": cast(Any, Predictor())})
        self.routes = JobsRoutes(
            models, Settings(), self.store, self.objects, self.parts, self.control, self.time
        )
        self._workers = [self._worker() for _ in range(_ENVIRONMENTS)]
        self._controller = Controller(
            self.store,
            self.objects,
            self.parts,
            self.control,
            self.told,
            RetryPolicy(),
            self.time,
            self.random.random,
            pause=self.time.wait,
        )
        self.faults.meet = self._meet
        for number in range(jobs):
            self._plan(Caller(f"job{number}", self._texts()), number * 0.02)

    def _worker(self) -> Worker:
        return Worker(
            self.store,
            self.objects,
            self.parts,
            self.control,
            self.echo,
            RetryPolicy(),
            self.random.random,
            pause=self.time.wait,
        )

    # Callers.

    def _texts(self) -> list[str]:
        """Texts that repeat, as they do, and are slow now and then."""
        rng = self.random
        count = rng.choice((1, 1, 2, 3, 4, 5, 9, 20))
        return [SLOW if rng.random() < 0.01 else f"text {int(rng.expovariate(0.01))}" for _ in range(count)]

    def _plan(self, caller: Caller, at_s: float) -> None:
        """Plans the requests of a caller."""
        rng, kind = self.random, self.random.random()
        if kind < 0.004:
            caller.texts[-1], caller.expected = (POISON if kind < 0.002 else KILLER), "failed"
        elif kind < 0.008:
            caller.texts[0] = "x" * INLINE_BYTES
        if rng.random() < 0.2:
            self._plan_source(caller, at_s)
        request: dict[str, Any] = {"min_probability": 0.5} if rng.random() < 0.1 else {}
        request |= {"push": {"sns": True}} if rng.random() < 0.1 else {}
        source = {"source": {"s3": caller.uri, "format": "jsonl"}}
        caller.body = msgspec.json.encode(request | (source if caller.uri else {"texts": caller.texts}))
        self._at(at_s, lambda: self._post(caller))
        for _ in range(rng.choice((0, 0, 0, 0, 5))):
            self._at(at_s + rng.random() * 300.0, lambda: self._post(caller))
        if rng.random() < 0.03 and caller.expected == "done":
            caller.expected = "cancelled or done"
            self._at(at_s + rng.random() * 60.0, lambda: self._cancel(caller))
            if rng.random() < 0.5:
                caller.expected = "done"
                caller.begins_anew = True
        if rng.random() < 0.02:
            caller.weeks = 2
        self._at(at_s + 6 * DAY_S, lambda: self._judge(caller))

    def _plan_source(self, caller: Caller, at_s: float) -> None:
        """A source of one to many parts. One in ten is changed meanwhile."""
        caller.uri = f"s3://theirs/{caller.name}"
        if self.random.random() < 0.1:
            caller.texts *= self.random.choice((10, 50))
        self._write(caller)
        if self.random.random() < 0.1 and caller.expected == "done":
            caller.expected = "changed or done"
            self._at(at_s + self.random.random() * 20.0, lambda: self._write(caller))

    def _write(self, caller: Caller) -> None:
        caller.texts = [f"new of {caller.name}", *caller.texts]
        content = "\n".join(f'"{text}"' for text in caller.texts).encode()
        self.objects.change(caller.uri, content)
        self.versions[content_digest(content)] = caller.texts

    def _post(self, caller: Caller) -> None:
        """As a client does: a request without an answer, or with a 503, is sent again."""
        request = Request("POST", "/v1/jobs", {"idempotency-key": caller.name}, caller.body)
        reply = self._asked(lambda: self.routes.create(request), lambda: self._post(caller))
        if reply is not None:
            caller.job = reply["id"]

    def _cancel(self, caller: Caller) -> None:
        if caller.job:
            request = Request("DELETE", "", params={"job": caller.job})
            reply = self._asked(lambda: self.routes.cancel(request), lambda: self._cancel(caller))
            if reply is not None and caller.begins_anew:
                self._at(self.time.now_s + self.random.random() * 60.0, lambda: self._post(caller))

    def _asked(self, ask: Callable[[], Any], repeat: Callable[[], None]) -> dict[str, Any] | None:
        try:
            with self._invocation(None):
                return cast(dict[str, Any], msgspec.json.decode(ask().body))
        except (NotReady, Killed):
            self._at(self.time.now_s + 5.0, repeat)
            return None

    # The world goes on.

    def _at(self, at_s: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._events, (at_s, next(self._numbers), do))

    def run(self) -> Proof:
        """Runs until nothing is left to do."""
        sweep_s = SWEEP_S
        while True:
            next_s = min(self.parts.next_s(), self.control.next_s(), *(each[0] for each in self._events[:1]))
            next_s = min(next_s, max(sweep_s, self.store.next_due_s()))
            if next_s == math.inf:
                break
            self.time.now_s = max(self.time.now_s, next_s)
            if self.time.now_s >= sweep_s and self.store.next_due_s() <= self.time.now_s:
                sweep_s = self.time.now_s + SWEEP_S
                self._sweep()
            while self._events and self._events[0][0] <= self.time.now_s:
                heapq.heappop(self._events)[2]()
            self._invoke()
            self.time.now_s += 0.05
        proof = self.proof
        proof.deliveries = self.parts.deliveries + self.control.deliveries
        proof.texts, proof.passes, proof.virtual_s = self.echo.texts, len(self.echo.calls), self.time.now_s
        return proof

    def _invoke(self) -> None:
        """One invocation of each function that has messages and an environment."""
        if self.control.next_s() <= self.time.now_s:
            self._control()
        free = [number for number in range(_ENVIRONMENTS) if f"worker{number}" not in self._busy]
        if free and self.parts.next_s() <= self.time.now_s:
            self._answer(self.random.choice(free))

    def _meet(self) -> None:
        """In the midst of a call of one invocation, another one runs."""
        if self._depth <= _DEPTH and self.random.random() < 0.002:
            self.proof.nested += 1
            self._invoke()

    @contextlib.contextmanager
    def _invocation(self, name: str | None) -> Iterator[None]:
        """Time and name of an environment's invocation. A kill is of this invocation alone."""
        before, self.faults.alive = self.faults.alive, self._alive(self.time.now_s + TIMEOUT_S)
        self._depth += 1
        if name is not None:
            self._busy.add(name)
        try:
            yield
        finally:
            self.faults.alive = before
            self._depth -= 1
            if name is not None:
                self._busy.discard(name)

    def _alive(self, ends_s: float) -> Callable[[], bool]:
        return lambda: self.time.now_s < ends_s

    def _run(self, name: str, queue: MemoryQueue, messages: list[Message], do: Callable[[], Any]) -> None:
        """One invocation, after which messages that are over are deleted."""
        self.proof.invocations += 1
        try:
            with self._invocation(name):
                again = do()
        except Killed:
            self.proof.kills += 1
            return  # nothing is deleted: all is received again
        for message in messages:
            if message.id not in again and self.random.random() > 0.001:  # a deletion may be lost
                queue.delete(message.id)

    def _answer(self, number: int) -> None:
        messages = self.parts.receive(BATCH)
        if self.random.random() < 0.02:
            self.echo.version += 1  # as a deployment does
            self._workers[number] = self._worker()
        worker, deadline = self._workers[number], self._deadline()
        self._run(f"worker{number}", self.parts, messages, lambda: worker.handle(messages, deadline))
        self._look(messages)

    def _control(self) -> None:
        (message,) = self.control.receive(1)
        deadline = self._deadline()
        self._run(
            f"control{message.id}",
            self.control,
            [message],
            lambda: [] if self._controller.handle(message, deadline) else [message.id],
        )

    def _sweep(self) -> None:
        self.proof.sweeps += 1
        with contextlib.suppress(Exception, Killed), self._invocation("sweep"):
            self._controller.sweep()

    def _deadline(self) -> Deadline:
        return Deadline(TIMEOUT_S - KEPT_S, self.time)

    # What came of it.

    def _look(self, messages: list[Message]) -> None:
        """As a caller reads answers: what was there once has to stay as it was."""
        for message in messages:
            name = read_part(message.body).name
            kept = self.store.parts.get(name[:2], {}).get(name.part)
            if kept is not None and self.seen.setdefault(name, kept) is not kept:
                self.proof.wrong.append(f"{name}: other answers than before")

    def _judge(self, caller: Caller) -> None:
        """Looks at a job when all must be over, and sends it again where that is planned."""
        proof, fails, kills = self.proof, self.faults.fails, self.faults.kills
        self.faults.fails = self.faults.kills = 0.0
        job = self.store.get(caller.job) if caller.job else None
        if job is None or not job.state.has_ended:
            proof.lost.append(f"{caller.name}: {job.state if job else 'gone'}")
        else:
            if job.push is not None and self.told.ends.get((job.id, job.generation)) != {job.state}:
                proof.untold.append(caller.name)
            self._judge_end(caller, job.state, job.reason, job.pin.etag if job.pin else "")
        self.faults.fails, self.faults.kills = fails, kills
        if caller.weeks and job is not None:
            self._next_week(caller, job.expires_s)

    def _judge_end(self, caller: Caller, state: str, reason: str, version: str) -> None:
        setattr(self.proof, state, getattr(self.proof, state) + 1)
        texts = self.versions[version] if version else caller.texts
        if state == "failed" and "changed" in caller.expected and "was changed" in reason:
            return
        if state not in caller.expected:
            self.proof.wrong.append(f"{caller.name}: {state} {reason}, expected {caller.expected}")
        elif state == "done":
            self.proof.answered += len(texts)
            if self._read(caller.job) != list(enumerate(texts)):
                self.proof.wrong.append(f"{caller.name}: wrong answers")

    def _read(self, job: str) -> list[tuple[int, str | None]]:
        """All answers, page by page."""
        rows: list[TextAnswer] = []
        path = f"/v1/jobs/{job}/answers/0"
        while path:
            *_, name, _, part = path.split("/")
            page = msgspec.json.decode(
                self.routes.answers(Request("GET", path, params={"job": name, "part": part})).body
            )
            lists = [page.get("predictions") or []]
            for result in page.get("results", []):
                key = result.get("url", "").removeprefix("https://bucket/")
                kept = msgspec.json.decode(self.objects.contents[key]) if key else result["predictions"]
                lists.append(kept)
            rows += msgspec.convert(list(itertools.chain(*lists)), list[TextAnswer])
            path = page.get("next", "")
        return [(row.index, text_of(row)) for row in rows]

    def _next_week(self, caller: Caller, expires_s: float) -> None:
        """The same request, moments after its job has expired, whatever is deleted by then."""
        caller.weeks -= 1
        caller.job = ""
        if caller.expected == "cancelled or done":
            caller.expected = "done"
        at_s = expires_s + self.random.random() * 300.0
        jobs, parts = self.random.random() < 0.5, self.random.random() < 0.5
        self._at(at_s, lambda: self.store.delete_expired(jobs, parts))
        self._at(at_s, lambda: self._post(caller))
        self._at(at_s + 6 * DAY_S, lambda: self._judge(caller))


def prove(jobs: int, seed: int, fails: float = 0.02, kills: float = 0.001) -> Proof:
    """Runs a world of so many callers to its end. Parts have four texts at most."""
    with (
        mock.patch("coldframe.jobs.sources.PART_TEXTS", PART_TEXTS),
        mock.patch("coldframe.api.jobs_routes.divided", _divided),
    ):
        return World(jobs, seed, fails, kills).run()


def _divided(texts: list[str]) -> list[list[str]]:
    return [texts[first : first + PART_TEXTS] for first in range(0, len(texts), PART_TEXTS)]


def main() -> None:
    """The proof as a command; its exit status says whether it holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fails", type=float, default=0.02)
    parser.add_argument("--kills", type=float, default=0.001)
    given = parser.parse_args()
    started_s = time.monotonic()
    proof = prove(given.jobs, given.seed, given.fails, given.kills)
    for name, value in vars(proof).items():
        print(f"{name}: {value[:5] if isinstance(value, list) else value}")
    print(f"took {time.monotonic() - started_s:.0f} s")
    raise SystemExit(bool(proof.lost or proof.wrong or proof.untold))


if __name__ == "__main__":
    main()
