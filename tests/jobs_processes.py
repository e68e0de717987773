"""Jobs through real processes: the emulator, the model, SQS, and kills of environments while stores fail.

    .venv/bin/python -m tests.jobs_processes --jobs 5000 --seed 1

sends jobs to the API, kills environments with SIGKILL, lets calls to the stores fail before or after they had
their effect, and holds each job's answers against those of POST /v1/predict. CI runs a share of it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import httpx

from bench.targets.faulty_server import Exchange, faulty_server
from local.front.emulator import Emulator
from local.front.options import EmulatorOptions
from local.template.template import Template, load_template
from tests.conftest import ROOT

_FUNCTION = "JobsWorkerFunction"
_VISIBILITY_S = 15
_SENDERS = 4
_TEXTS = [f"{subject} {verb} {thing}" for subject, verb, thing in zip(
    ["The shuttle", "My printer", "A doctor", "The team", "This key"] * 40,
    ["reached", "does not see", "prescribed", "lost", "encrypts"] * 40,
    [f"number {number}" for number in range(200)],
    strict=True,
)]  # fmt: skip


@dataclass
class Found:
    """What came of the jobs. lost, wrong, changed: names of jobs that must not be."""

    jobs: int = 0
    done: int = 0
    messages: int = 0
    kills: int = 0
    failed_calls: int = 0
    repeated_requests: int = 0
    took_s: float = 0.0
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


def impatient_template() -> Template:
    """The project's template with jobs, whose messages are visible again after seconds."""
    template = load_template(ROOT / "template.yaml", {"Jobs": "on"})
    queues = tuple(
        replace(queue, attributes={**queue.attributes, "VisibilityTimeout": str(_VISIBILITY_S)})
        if queue.name.endswith("JobsWorkerQueue")
        else queue
        for queue in template.queues
    )
    sources = template.event_sources
    mappings = tuple(replace(each, visibility_s=float(_VISIBILITY_S)) for each in sources.mappings)
    return replace(template, queues=queues, event_sources=replace(sources, mappings=mappings))


class Run:
    """One run of the emulator."""

    def __init__(self, jobs: int, seed: int, fails: float, kill_every_s: float) -> None:
        self.found = Found(jobs=jobs)
        self._random = random.Random(seed)
        self._faults = random.Random(seed + 1)
        self._fails = fails
        self._kill_every_s = kill_every_s
        self._asked = [self._random.choices(_TEXTS, k=self._random.randint(1, 3)) for _ in range(jobs)]
        self._answers: dict[str, str] = {}
        self._expected: dict[str, Any] = {}

    def fault(self, exchange: Exchange) -> bool:
        """A call that fails, one time in two after it had its effect."""
        found = self._faults.random()
        if found >= self._fails:
            return False
        self.found.failed_calls += 1
        if found < self._fails / 2:
            exchange.forward()
        return exchange.answer_json(500, {"__type": "InternalServerError", "message": "as told"})

    async def prove(self) -> Found:
        """Sends all jobs, waits until each has ended, and looks at each once more."""
        started_s = time.monotonic()
        with faulty_server("http://127.0.0.1:9") as stores:
            stores.fault = self.fault
            endpoints = {f"AWS_ENDPOINT_URL_{each}": stores.url for each in ("DYNAMODB", "S3", "SQS")}
            options = EmulatorOptions(
                impatient_template(), port=0, environ=endpoints, max_environments=6, log=self._log
            )
            async with Emulator(options) as emulator:
                stores.upstream = urlsplit(emulator.stores.url or "").netloc
                limits = httpx.Limits(max_connections=_SENDERS)
                async with httpx.AsyncClient(
                    base_url=emulator.url, timeout=120, trust_env=False, limits=limits
                ) as client:
                    await self._run(client, emulator)
        self.found.took_s = time.monotonic() - started_s
        return self.found

    async def _run(self, client: httpx.AsyncClient, emulator: Emulator) -> None:
        for first in range(0, len(_TEXTS), 50):
            texts = _TEXTS[first : first + 50]
            reply = (await client.post("/v1/predict", json={"texts": texts})).json()
            self._expected |= {
                text: each["heads"] for text, each in zip(texts, reply["predictions"], strict=True)
            }
        killing = asyncio.create_task(self._kill(emulator))
        names = await self._each(client, range(len(self._asked)), self._send)
        await self._each(client, range(len(names)), lambda client, number: self._ended(client, names[number]))
        killing.cancel()
        await asyncio.wait({killing})
        await self._each(
            client, range(len(names)), lambda client, number: self._judge(client, names[number], number)
        )

    async def _each(self, client: httpx.AsyncClient, numbers: range, do: Any) -> list[Any]:
        found: dict[int, Any] = {}
        left = iter(numbers)

        async def sender(mine: Iterator[int]) -> None:
            for number in mine:
                found[number] = await do(client, number)

        await asyncio.gather(*(sender(left) for _ in range(_SENDERS)))
        return [found[number] for number in numbers]

    async def _ask(
        self, client: httpx.AsyncClient, method: str, path: str, body: Any = None, **headers: str
    ) -> Any:
        """Asks until there is an answer, as the problem of a failing store tells callers to."""
        while True:
            with contextlib.suppress(httpx.HTTPError, json.JSONDecodeError):
                reply = await client.request(method, path, json=body, headers=headers)
                if reply.status_code < 300:
                    return reply.json()
            self.found.repeated_requests += 1
            await asyncio.sleep(0.05)

    async def _send(self, client: httpx.AsyncClient, number: int) -> str:
        body = {"texts": self._asked[number]}
        headers = {"idempotency-key": f"job-{number}"}
        return str((await self._ask(client, "POST", "/v1/jobs", body, **headers))["id"])

    async def _ended(self, client: httpx.AsyncClient, name: str) -> None:
        while True:
            found = await self._ask(client, "GET", f"/v1/jobs/{name}")
            if found["state"] not in ("queued", "running"):
                self._answers[name] = json.dumps(found.get("predictions"))
                return
            await asyncio.sleep(0.2)

    async def _judge(self, client: httpx.AsyncClient, name: str, number: int) -> None:
        found = await self._ask(client, "GET", f"/v1/jobs/{name}")
        expected = [
            {"index": index, "heads": self._expected[text]} for index, text in enumerate(self._asked[number])
        ]
        if found["state"] != "done":
            self.found.lost.append(f"{name}: {found['state']} {found.get('reason')}")
        elif json.dumps(found["predictions"]) != self._answers[name]:
            self.found.changed.append(name)
        elif found["predictions"] != expected:
            self.found.wrong.append(name)
        else:
            self.found.done += 1

    async def _kill(self, emulator: Emulator) -> None:
        """SIGKILL, now and then, for an environment of the jobs function, whatever it does."""
        while True:
            await asyncio.sleep(self._random.uniform(0, 2 * self._kill_every_s))
            pids = [
                each.pid
                for each in emulator.service.snapshot().environments
                if each.function == _FUNCTION and each.pid is not None and each.invocation_age_s is not None
            ]
            if pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._random.choice(pids), signal.SIGKILL)
                    self.found.kills += 1

    def _log(self, line: str) -> None:
        if "PROOF_LOG" in os.environ:
            print(line, flush=True)
        if line.startswith('{"event": "jobs"'):
            self.found.messages += json.loads(line)["messages"]


def main() -> None:
    """The proof as a command; its exit status says whether it holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fails", type=float, default=0.02)
    parser.add_argument("--kill-every-s", type=float, default=10.0)
    given = parser.parse_args()
    found = asyncio.run(Run(given.jobs, given.seed, given.fails, given.kill_every_s).prove())
    for name, value in vars(found).items():
        print(f"{name}: {value[:5] if isinstance(value, list) else value}")
    raise SystemExit(bool(found.lost or found.wrong or found.changed or found.done != found.jobs))


if __name__ == "__main__":
    main()
