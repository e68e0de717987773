"""Schedules of a template that is not ours, in the emulator."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.options import EmulatorOptions
from coldframe_local.emulator.template.template import Template, load_template

pytestmark = pytest.mark.anyio
START_S = datetime(2026, 11, 22, 10, 0, tzinfo=UTC).timestamp()

CODE = """
import json, os
def handler(event, context):
    with open(os.environ["TOLD"], "a") as told:
        told.write(json.dumps(event) + "\\n")
"""
TEMPLATE = """
Transform: AWS::Serverless-2016-10-31
Resources:
  Tidy:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: .
      Handler: tidy.handler
      Runtime: python3.13
      MemorySize: 256
      Events:
        Often: {Type: Schedule, Properties: {Schedule: rate(5 minutes)}}
        Nightly: {Type: ScheduleV2, Properties: {ScheduleExpression: "cron(5 10 * * ? *)", Input: '{"a": 1}'}}
"""


class Time:
    """A clock that `run_until` turns on, from one sleeper's time to the next one's."""

    def __init__(self) -> None:
        self.now_s = START_S
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    async def nap(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now_s + seconds, woken))
        await woken

    async def run_until(self, end_s: float) -> None:
        while True:
            for _ in range(10):  # whoever is awake goes to sleep
                await asyncio.sleep(0)
            first = min(self._sleepers, key=lambda sleeper: sleeper[0])
            if first[0] > end_s:
                return
            self._sleepers.remove(first)
            self.now_s = first[0]
            first[1].set_result(None)


@pytest.fixture
def template(tmp_path: Path) -> Template:
    """A function that writes down what it gets."""
    (tmp_path / "tidy.py").write_text(CODE)
    (tmp_path / "t.yaml").write_text(TEMPLATE)
    return load_template(tmp_path / "t.yaml")


async def test_functions_get_their_events(template: Template, tmp_path: Path) -> None:
    """Each schedule sends its function an event when it is due, and the log says so."""
    lines: list[str] = []
    time, told = Time(), tmp_path / "told"
    options = EmulatorOptions(template, port=0, environ={"TOLD": str(told)}, log=lines.append)
    async with Emulator(options, now=lambda: time.now_s, nap=time.nap) as emulator:
        notes = list(emulator.notes())
        await time.run_until(START_S + 600)
        await emulator.asynchronous.idle()
    events = [json.loads(line) for line in told.read_text().splitlines()]
    assert events.count({"a": 1}) == 1
    times = sorted(event["time"] for event in events if event != {"a": 1})
    assert times == ["2026-11-22T10:05:00Z", "2026-11-22T10:10:00Z"]
    assert any("rate(5 minutes), calls Tidy: first at 2026-11-22 10:05:00 UTC" in note for note in notes)
    assert "Schedule coldframe-TidyOften (rate(5 minutes)) sends Tidy its event." in lines


async def test_switched_off(template: Template) -> None:
    """Without schedules nothing is sent, and the log says so."""
    options = EmulatorOptions(template, port=0, schedules=False, log=lambda line: None)
    time = Time()
    async with Emulator(options, now=lambda: time.now_s, nap=time.nap) as emulator:
        assert "Schedules of the template do not run: `schedules` is false." in list(emulator.notes())
    assert time.now_s == START_S
