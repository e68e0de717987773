"""Jobs under kills of environments and a store that fails: none lost, none answered twice differently.

    .venv/bin/python -m tests.jobs_proof --jobs 100000 --seed 1

runs the worker in virtual time and prints what it did. CI runs a share of it.
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import dataclass, field

import msgspec

from coldframe.jobs.backoff import RetryPolicy
from coldframe.jobs.records import Job, Options, Part, Push, Result, read_body
from coldframe.jobs.states import Event, State, step
from coldframe.jobs.worker import INLINE_BYTES, Message, Worker
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

BATCH = 100
POLICY = RetryPolicy(age_s=86_400.0)


@dataclass
class Proof:
    """What came of the jobs. Each list names jobs that must not be."""

    jobs: int = 0
    done: int = 0
    failed: int = 0
    cancelled: int = 0
    deliveries: int = 0
    invocations: int = 0
    kills: int = 0
    passes: int = 0
    texts: int = 0
    answered: int = 0
    virtual_s: float = 0.0
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)


class World:
    """Jobs from a seed, and all that works on them."""

    def __init__(self, jobs: int, seed: int, fails: float, kills: float) -> None:
        self.faults = Faults(seed, fails, kills)
        self.random = random.Random(seed + 1)
        self.store = MemoryStore(self.faults)
        self.objects = MemoryObjects(self.faults)
        self.queue = MemoryQueue(self.faults)
        self.told = Told(self.faults)
        self.echo = Echo(self.faults)
        self.texts: dict[str, list[list[str]]] = {}
        self.to_fail: set[str] = set()
        self.seen: dict[tuple[str, int], Result] = {}
        self.changed: set[str] = set()
        for number in range(jobs):
            self._add(f"job{number}")

    def _add(self, name: str) -> None:
        rng = self.random
        # Texts repeat, as they do.
        parts = [
            [f"text {int(rng.expovariate(0.01))}" for _ in range(rng.randint(1, 4))]
            for _ in range(rng.choice((1, 1, 1, 2, 5)))
        ]
        if (kind := rng.random()) < 0.002:
            parts[-1][0] = POISON if kind < 0.001 else KILLER
            self.to_fail.add(name)
        elif kind > 0.998:
            parts[0][0] = "x" * INLINE_BYTES
        push = Push(sns=True) if rng.random() < 0.1 else None
        self.texts[name] = parts
        self.store.jobs[name] = Job(
            name, name, State.QUEUED, Options(), 0.0, 1e9, push=push, parts=len(parts)
        )
        for number, texts in enumerate(parts):
            first = sum(map(len, parts[:number]))
            body = msgspec_encode(Part(name, number, first, texts))
            self.queue.add(body)
            if rng.random() < 0.01:  # a standard queue may deliver twice
                self.queue.add(body)

    def look(self, messages: list[Message]) -> None:
        """As a caller reads answers: what was there once has to stay as it was."""
        for name in {read_body(message.body).job for message in messages}:
            for part, result in self.store.parts.get(name, {}).items():
                if self.seen.setdefault((name, part), result) is not result:
                    self.changed.add(name)

    def worker(self) -> Worker:
        return Worker(
            self.store,
            self.objects,
            self.queue,
            self.told,
            self.echo,
            POLICY,
            lambda: self.queue.now_s,
            self.random.random,
        )


def msgspec_encode(part: Part) -> str:
    """A part as a message's body."""
    return msgspec.json.encode(part).decode()


def prove(jobs: int, seed: int, fails: float = 0.02, kills: float = 0.001) -> Proof:
    """Runs until the queue is empty."""
    world = World(jobs, seed, fails, kills)
    proof = Proof(jobs=jobs)
    cancelled: set[str] = set()
    while messages := world.queue.receive(BATCH):
        proof.invocations += 1
        if world.random.random() < 0.02:
            name = f"job{world.random.randrange(jobs)}"
            if not world.store.jobs[name].state.has_ended:
                world.store.jobs[name] = replaced(world.store.jobs[name])
                cancelled.add(name)
        try:
            again = set(world.worker().handle(messages, Deadline(60.0)))
        except Killed:
            proof.kills += 1
            continue  # nothing is deleted: all is received again
        finally:
            world.queue.now_s += 1.0
            if world.random.random() < 0.1:
                world.echo.version += 1  # as a deployment does
            world.look(messages)
        for message in messages:
            if message.id not in again and world.random.random() > 0.001:  # a deletion may be lost
                world.queue.delete(message.id)
    _judge(world, proof, cancelled)
    return proof


def replaced(job: Job) -> Job:
    """As somebody cancels it."""
    return msgspec.structs.replace(job, state=step(job.state, Event.CANCEL))


def _judge(world: World, proof: Proof, cancelled: set[str]) -> None:
    for name, parts in world.texts.items():
        job = world.store.jobs[name]
        rows = answers_of(world.store, world.objects, name)
        if job.state is State.DONE:
            proof.done += 1
            texts = [text for part in parts for text in part]
            proof.answered += len(texts)
            found = [(row.index, text_of(row)) for row in rows]
            if found != list(enumerate(texts)) or name in world.to_fail | world.changed:
                proof.wrong.append(name)
        elif job.state is State.FAILED:
            proof.failed += 1
            if name not in world.to_fail:
                proof.wrong.append(f"{name}: {job.reason}")
        elif job.state is State.CANCELLED and name in cancelled:
            proof.cancelled += 1
        else:
            proof.lost.append(name)
        if job.push is not None and world.told.states.get(name) != {job.state}:
            proof.untold.append(name)
    proof.deliveries, proof.texts = world.queue.deliveries, world.echo.texts
    proof.passes, proof.virtual_s = len(world.echo.calls), world.queue.now_s


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
