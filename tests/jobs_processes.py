"""Jobs through real processes: the emulator, the model, SQS, and kills of environments while stores fail.

    .venv/bin/python -m tests.jobs_processes --jobs 600 --rows 50000 --seed 1

sends jobs to the API, kills environments with SIGKILL, lets calls to the stores fail before or after they had
their effect, and holds the answers against those of POST /v1/predict. Half of the jobs have sources, and
every twentieth source is a spoilt one. Jobs that were cancelled, have expired or whose source was changed are
sent anew. CI runs a share of it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import io
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import boto3
import httpx
import pyarrow as pa
from botocore.config import Config
from pyarrow import parquet

from coldframe_bench.targets.faulty_server import Exchange, faulty_server
from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.options import EmulatorOptions
from coldframe_local.emulator.template.template import Template, load_template
from tests.conftest import ROOT

T = TypeVar("T")
Kind = Literal["texts", "source", "spoilt", "repeated", "cancelled", "expired", "changed"]

_FUNCTIONS = ("JobsWorkerFunction", "JobsWorkerControlFunction")
_TABLE, _BUCKET = "coldframe-JobsWorkerTable", "coldframe-jobsworkerbucket"
_VISIBILITY_S = 15
_SENDERS = 4
_FORMATS = ("jsonl", "csv", "parquet")
_TEXTS = [f"{subject} {verb} {thing}" for subject, verb, thing in zip(
    ["The shuttle", "My printer", "A doctor", "The team", "This key"] * 40,
    ["reached", "does not see", "prescribed", "lost", "encrypts"] * 40,
    [f"number {number}" for number in range(200)],
    strict=True,
)]  # fmt: skip


@dataclass
class Case:
    """A job of the proof. kind: what happens to it. texts: those that it is to answer."""

    number: int
    kind: Kind
    texts: list[str]
    format: str = ""
    spoilt_row: int = 0
    id: str = ""
    before: str = ""

    @property
    def key(self) -> str:
        return f"uploads/{self.number}"

    def request(self) -> dict[str, Any]:
        if not self.format:
            return {"texts": self.texts}
        return {"source": {"s3": f"s3://{_BUCKET}/{self.key}", "format": self.format}}


@dataclass
class Found:
    """What came of the jobs. lost, wrong, changed, mixed: names of jobs that must not be."""

    jobs: int = 0
    done: int = 0
    failed_as_expected: int = 0
    texts: int = 0
    pages: int = 0
    most_pages: int = 0
    messages: int = 0
    kills: int = 0
    failed_calls: int = 0
    repeated_requests: int = 0
    took_s: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether every job came to the end that it is to come to."""
        all_ended = self.done + self.failed_as_expected == self.jobs
        return all_ended and not (self.lost or self.wrong or self.changed)


def impatient_template() -> Template:
    """The project's template with jobs, whose messages are visible again after seconds."""
    template = load_template(ROOT / "template.yaml", {"Jobs": "on"})
    queues = tuple(
        replace(queue, attributes={**queue.attributes, "VisibilityTimeout": str(_VISIBILITY_S)})
        if "VisibilityTimeout" in queue.attributes
        else queue
        for queue in template.queues
    )
    sources = template.event_sources
    mappings = tuple(replace(each, visibility_s=float(_VISIBILITY_S)) for each in sources.mappings)
    return replace(template, queues=queues, event_sources=replace(sources, mappings=mappings))


def cases(jobs: int, rows: int, chance: random.Random) -> list[Case]:
    """Jobs of every kind, in an order without meaning. rows: of the first source, at most of others."""
    found: list[Case] = []
    of_texts: list[Kind] = ["texts", "repeated", "cancelled", "expired", "texts", "texts"]
    for number in range(jobs):
        if number % 2:
            kind = of_texts[number // 2 % len(of_texts)]
            found.append(Case(number, kind, chance.choices(_TEXTS, k=chance.randint(1, 3))))
            continue
        source = number // 2
        # Half of the sources have fewer than three rows, and the mean is a fortieth of the largest.
        size = rows if not source else round(rows ** (chance.random() ** 4))
        case = Case(number, "source", chance.choices(_TEXTS, k=size), _FORMATS[source % 3])
        if source % 20 == 2:
            case.kind, case.spoilt_row = "spoilt", chance.randint(1, size)
        elif source % 10 == 5:
            case.kind = "changed"
        found.append(case)
    chance.shuffle(found)
    return found


def source_of(texts: list[str], format_: str) -> bytes:
    """An object with these texts."""
    if format_ == "parquet":
        file = io.BytesIO()
        parquet.write_table(pa.table({"text": texts}), file, row_group_size=5000)
        return file.getvalue()
    if format_ == "csv":
        table = io.StringIO(newline="")
        writer = csv.writer(table)
        writer.writerows([["id", "text"], *([number, text] for number, text in enumerate(texts))])
        return table.getvalue().encode()
    return "".join(json.dumps(text) + "\n" for text in texts).encode()


_SPOILT_LINES = (b"{", b'"' + b"x" * (2 << 20), b"1")


def spoilt_source(case: Case) -> tuple[bytes, str]:
    """An object that cannot be read from some row on, and a part of the reason."""
    content = source_of(case.texts, case.format)
    if case.format == "parquet":
        return content[:-9] + b"PAR1", "not Parquet"
    lines = content.splitlines(keepends=True)
    if case.format == "csv":
        lines.insert(case.spoilt_row, b"a,b,c\r\n")
        return b"".join(lines), f"line {case.spoilt_row + 1} of the source has 3 columns"
    line = _SPOILT_LINES[case.number // 40 % len(_SPOILT_LINES)]
    lines.insert(case.spoilt_row - 1, line + b"\n")
    return b"".join(lines), f"line {case.spoilt_row} of the source"


class Run:
    """One run of the emulator. rows: of the largest source. limit_s: what has not ended by then is lost."""

    def __init__(
        self,
        jobs: int,
        seed: int,
        fails: float,
        kill_every_s: float,
        rows: int = 1200,
        limit_s: float = 3600.0,
    ) -> None:
        self.found = Found(jobs=jobs)
        self._random = random.Random(seed)
        self._faults = random.Random(seed + 1)
        self._fails = fails
        self._kill_every_s = kill_every_s
        self._limit_s = limit_s
        self._cases = cases(jobs, rows, self._random)
        self.found.kinds.update(case.kind for case in self._cases)
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
                limits = httpx.Limits(max_connections=2 * _SENDERS)
                async with httpx.AsyncClient(
                    base_url=emulator.url, timeout=120, trust_env=False, limits=limits
                ) as client:
                    await _Road(self, client, emulator).run()
        self.found.took_s = time.monotonic() - started_s
        return self.found

    def _log(self, line: str) -> None:
        if "PROOF_LOG" in os.environ:
            print(line, flush=True)
        if '"event":"jobs"' in line:
            self.found.messages += json.loads(line)["messages"]


class _Road:
    """The way of all jobs of a run through an emulator."""

    def __init__(self, run: Run, client: httpx.AsyncClient, emulator: Emulator) -> None:
        self._run = run
        self.found = run.found
        self._client = client
        self._emulator = emulator
        self._ends_s = time.monotonic() + run._limit_s
        self._s3, self._dynamodb = (
            boto3.client(
                service,
                endpoint_url=emulator.stores.url,
                region_name="us-east-1",
                aws_access_key_id="test",
                aws_secret_access_key="test",
                config=Config(s3={"addressing_style": "path"}),
            )
            for service in ("s3", "dynamodb")
        )

    async def run(self) -> None:
        """Sends, waits, spoils and sends anew, waits, judges."""
        await self._learn()
        killing = asyncio.create_task(self._kill())
        sent = self._run._cases
        await self._each(sent, self._send)
        await self._each(sent, self._end)
        anew = [case for case in sent if case.kind in ("cancelled", "expired", "changed")]
        await self._each(anew, self._send_anew)
        await self._each(anew, self._end)
        killing.cancel()
        await asyncio.wait({killing})
        await self._each(sent, self._judge)

    async def _learn(self) -> None:
        """What POST /v1/predict says of every text."""
        for first in range(0, len(_TEXTS), 50):
            texts = _TEXTS[first : first + 50]
            reply = (await self._client.post("/v1/predict", json={"texts": texts})).json()
            self._run._expected |= {
                text: each["heads"] for text, each in zip(texts, reply["predictions"], strict=True)
            }

    async def _each(self, of: Iterable[Case], do: Callable[[Case], Awaitable[None]]) -> None:
        left = iter(of)

        async def sender() -> None:
            for case in left:
                await do(case)

        await asyncio.gather(*(sender() for _ in range(_SENDERS)))

    # Requests.

    async def _ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Asks until there is an answer, as the problem of a failing store says; None for a 404."""
        while time.monotonic() < self._ends_s:
            with contextlib.suppress(httpx.HTTPError, json.JSONDecodeError):
                reply = await self._client.request(method, path, json=body, headers=headers)
                if reply.status_code < 300:
                    return reply.json()
                if reply.status_code == 404:
                    return None
            self.found.repeated_requests += 1
            await asyncio.sleep(0.05)
        return None

    async def _post(self, case: Case) -> str:
        headers = {} if case.format else {"idempotency-key": f"job-{case.number}"}
        found = await self._ask("POST", "/v1/jobs", case.request(), **headers)
        return str(found["id"]) if found else ""

    async def _put(self, case: Case, content: bytes) -> None:
        await asyncio.to_thread(self._s3.put_object, Bucket=_BUCKET, Key=case.key, Body=content)

    async def _send(self, case: Case) -> None:
        if case.format:
            content = source_of(case.texts, case.format) if case.kind != "spoilt" else spoilt_source(case)[0]
            await self._put(case, content)
        case.id = await self._post(case)
        if case.kind == "repeated":
            names = await asyncio.gather(*(self._post(case) for _ in range(5)))
            if set(names) != {case.id}:
                self.found.wrong.append(f"{case.id}: {names} for one request")
        if case.kind == "cancelled":
            await self._ask("DELETE", f"/v1/jobs/{case.id}")
        if case.kind == "changed":
            case.before = case.id
            await self._put(case, source_of(case.texts[::-1], case.format))

    async def _send_anew(self, case: Case) -> None:
        if case.kind == "changed":
            await self._judge_before(case)
        if case.kind == "expired":
            await asyncio.to_thread(self._expire, case)
            if await self._ask("GET", f"/v1/jobs/{case.id}") is not None:
                self.found.wrong.append(f"{case.id}: it has expired, and is there")
        case.id = await self._post(case)

    def _expire(self, case: Case) -> None:
        """What DynamoDB makes of an expired job: nothing yet, its parts are gone, or the job itself."""
        by_job: dict[str, Any] = {
            "KeyConditionExpression": "job = :job",
            "ExpressionAttributeValues": {":job": {"S": case.id}},
        }
        for item in self._dynamodb.query(TableName=_TABLE, **by_job)["Items"]:
            key = {name: item[name] for name in ("job", "item")}
            is_job = item["item"]["S"] == "job"
            if case.number % 3 == (1 if is_job else 2):
                self._dynamodb.delete_item(TableName=_TABLE, Key=key)
            else:
                self._dynamodb.update_item(
                    TableName=_TABLE,
                    Key=key,
                    UpdateExpression="SET expires_at_s = :past",
                    ExpressionAttributeValues={":past": {"N": "1"}},
                )

    async def _end(self, case: Case) -> None:
        """Waits for the end of a job, and notes its answers where they are few."""
        while time.monotonic() < self._ends_s:
            found = await self._ask("GET", f"/v1/jobs/{case.id}")
            if found is None or found["state"] not in ("queued", "running"):
                self._run._answers[case.id] = json.dumps((found or {}).get("predictions"))
                return
            await asyncio.sleep(0.2)

    # Judgement.

    async def _rows(self, found: dict[str, Any]) -> list[Any]:
        """All answers of a job that is done, page after page."""
        if "predictions" in found:
            return list(found["predictions"])
        rows: list[Any] = []
        pages = 1
        while True:
            for part in found["results"]:
                rows += part["predictions"] if "predictions" in part else await self._ask("GET", part["url"])
            if not found.get("next"):
                break
            pages += 1
            found = await self._ask("GET", found["next"])
        self.found.pages += pages
        self.found.most_pages = max(pages, self.found.most_pages)
        return rows

    async def _is_right(self, found: dict[str, Any], texts: list[str]) -> bool:
        rows = await self._rows(found)
        expected = ({"index": index, "heads": self._run._expected[text]} for index, text in enumerate(texts))
        return len(rows) == len(texts) and all(a == b for a, b in zip(rows, expected, strict=True))

    async def _judge_before(self, case: Case) -> None:
        """A job whose source was changed has the old object's answers, or has failed and says so."""
        found = await self._ask("GET", f"/v1/jobs/{case.id}") or {"state": "lost"}
        if found["state"] == "done":
            if not await self._is_right(found, case.texts):
                self.found.wrong.append(f"{case.id}: not the object that was there at its request")
        elif "changed while it was read" not in found.get("reason", ""):
            self.found.lost.append(f"{case.id}: {found['state']} {found.get('reason')}")
        case.texts = case.texts[::-1]

    async def _judge(self, case: Case) -> None:
        found = await self._ask("GET", f"/v1/jobs/{case.id}") or {"state": "not found"}
        state, reason = found["state"], found.get("reason", "")
        if case.kind == "spoilt":
            if state == "failed" and spoilt_source(case)[1] in reason:
                self.found.failed_as_expected += 1
            else:
                self.found.wrong.append(f"{case.id}: {state} {reason}")
        elif state != "done":
            self.found.lost.append(f"{case.id} ({case.kind}): {state} {reason}")
        elif json.dumps(found.get("predictions")) != self._run._answers[case.id]:
            self.found.changed.append(case.id)
        elif not await self._is_right(found, case.texts):
            self.found.wrong.append(case.id)
        else:
            self.found.done += 1
            self.found.texts += len(case.texts)

    async def _kill(self) -> None:
        """SIGKILL, now and then, for an environment of the jobs' functions, whatever it does."""
        chance = random.Random(self._run._kill_every_s)
        while True:
            await asyncio.sleep(chance.uniform(0, 2 * self._run._kill_every_s))
            pids = [
                each.pid
                for each in self._emulator.service.snapshot().environments
                if each.function in _FUNCTIONS and each.pid is not None and each.invocation_age_s is not None
            ]
            if pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chance.choice(pids), signal.SIGKILL)
                    self.found.kills += 1


def main() -> None:
    """The proof as a command; its exit status says whether it holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=600)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fails", type=float, default=0.02)
    parser.add_argument("--kill-every-s", type=float, default=10.0)
    given = parser.parse_args()
    run = Run(given.jobs, given.seed, given.fails, given.kill_every_s, given.rows)
    found = asyncio.run(run.prove())
    for name, value in vars(found).items():
        print(f"{name}: {value[:5] if isinstance(value, list) else value}")
    raise SystemExit(not found.holds)


if __name__ == "__main__":
    main()
