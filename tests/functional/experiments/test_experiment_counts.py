"""Counts of an experiment through real environments, kills and a table that fails.

`EXPERIMENT_KILLS=50` kills as many environments; a plain run kills a few.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from urllib.parse import urlsplit

import httpx
import pytest

from coldframe.cache.aws_clients import AwsClients
from coldframe.experiments.control import Control
from coldframe.experiments.document import Run, read_experiment
from coldframe.experiments.table import TableStore
from coldframe_bench.targets.faulty_server import Exchange, faulty_server
from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.options import EmulatorOptions
from coldframe_local.emulator.template.template import load_template
from tests.conftest import ROOT

pytestmark = [pytest.mark.anyio, pytest.mark.waits]

KILLS = int(os.environ.get("EXPERIMENT_KILLS", "8"))
EVERY, TABLE = 50, "coldframe-ExperimentTable"
_EXPERIMENT = (
    b'{"name": "heads", "kind": "split", "stages": [0.5], "counts": "answer", "automatic": false,'
    b' "arms": [{"name": "now"}, {"name": "next", "head": "mlp"}]}'
)


class Failing:
    """A table of which every 50th call fails: in turns before and after it had its effect."""

    def __init__(self) -> None:
        self.failed = 0
        self._calls = EVERY - 5  # so that a short run meets a failure, too

    def __call__(self, exchange: Exchange) -> bool:
        self._calls += 1
        if self._calls % EVERY:
            return False
        self.failed += 1
        if self.failed % 2:
            exchange.forward()
        return exchange.answer_json(500, {"__type": "InternalServerError", "message": "as told"})


async def test_counts_survive_kills_and_failing_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """After kills, with 2 % of the calls failing, the table counts each answer that a caller received.

    A kill between the write and the answer leaves one count whose answer nobody received: at most one a kill.
    """
    fault = Failing()
    with faulty_server("http://127.0.0.1:9") as stores:
        stores.fault = fault
        options = EmulatorOptions(
            load_template(ROOT / "template.yaml", {"Experiments": "on", "CachePolicy": "off"}),
            port=0,
            environ={"AWS_ENDPOINT_URL_DYNAMODB": stores.url, "COLDFRAME_CACHE_DEADLINE_MS": "10000"},
            max_environments=2,
            log=lambda line: None,
        )
        async with Emulator(options) as emulator:
            stores.upstream = urlsplit(emulator.stores.url or "").netloc
            monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", str(emulator.stores.url))
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
                monkeypatch.setenv(name, "test")
            monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
            control = Control(TableStore(TABLE, AwsClients(10.0)))
            run = await asyncio.to_thread(control.start, read_experiment(_EXPERIMENT))
            received, lost = await _requests(emulator)
            counted = await asyncio.to_thread(_counted, control, run)
    assert fault.failed > 0
    for arm in ("now", "next"):
        assert received[arm] > 0
    assert sum(received.values()) <= sum(counted.values()) <= sum(received.values()) + lost
    print(f"received {received}, counted {counted}, unanswered {lost}, failed calls {fault.failed}")
    assert all(received[arm] <= counted[arm] for arm in received)


async def _requests(emulator: Emulator) -> tuple[dict[str, int], int]:
    """Answers by arm, and the number of requests without an answer. Environments are killed meanwhile."""
    received, lost, kills, number = {"now": 0, "next": 0}, 0, 0, 0
    dice = random.Random(7)
    async with httpx.AsyncClient(base_url=emulator.url, timeout=120, trust_env=False) as client:
        while kills < KILLS:
            before = sum(received.values())
            while sum(received.values()) < before + 2:
                number += 1
                arm = await _arm(client, f"text {number}")
                if arm is None:
                    lost += 1
                elif arm:
                    received[arm] += 1
            pids = [each.pid for each in emulator.service.snapshot().environments if each.pid is not None]
            if dice.random() < 0.5:
                asking = asyncio.create_task(_arm(client, f"in flight {number}"))
                await asyncio.sleep(dice.random() * 0.02)
                _kill(pids)
                arm = await asking
                lost += arm is None
                if arm:
                    received[arm] += 1
            else:
                _kill(pids)
            kills += 1
    return received, lost


async def _arm(client: httpx.AsyncClient, text: str) -> str | None:
    """The arm that answered; "" outside of the experiment, None without an answer."""
    reply = await client.post("/v1/predict", json={"text": text})
    if reply.status_code != 200:
        return None
    mark = reply.json().get("experiment")
    return str(mark["arm"]) if mark else ""


def _kill(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def _counted(control: Control, run: Run) -> dict[str, int]:
    """Answers by arm, as the table has them."""
    counts = control.counts(run)
    return {arm: sum(stage.of(arm, "answers") for stage in counts) for arm in ("now", "next")}
