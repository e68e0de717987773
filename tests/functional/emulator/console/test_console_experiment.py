"""The console's panel about an experiment: what its endpoint reads, and the panel in a real Chromium."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from playwright.async_api import Page, expect

from coldframe.cache.aws_clients import AwsClients
from coldframe.experiments.control import Control
from coldframe.experiments.document import Run, lineup_of, read_experiment
from coldframe.experiments.stores import COUNTS, FolderStore, Item, Label
from coldframe.experiments.table import TableStore
from coldframe.experiments.tally import Counts
from coldframe.timing import Deadline
from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.options import EmulatorOptions
from coldframe_local.emulator.template.template import load_template
from tests.conftest import ROOT
from tests.functional.emulator.console.test_console import check_looks, opened, serving
from tests.support.emulation import PATIENCE_S

pytestmark = [pytest.mark.browser, pytest.mark.anyio]

PHONE = {"width": 390, "height": 844}
TABLE = "coldframe-ExperimentTable"
VERSIONS = ["a" * 64, "b" * 64]
SPLIT = {
    "name": "canary",
    "kind": "split",
    "stages": [0.1, 0.5, 1],
    "counts": "answer",
    "arms": [{"name": "now"}, {"name": "next", "head": "mlp"}],
}


def started(folder: Path, **fields: Any) -> Run:
    """An experiment in a folder."""
    return Control(FolderStore(folder)).start(read_experiment(json.dumps(SPLIT | fields).encode()))


def count(folder: Path, run: Run, labels: dict[str, int], **arms: dict[str, int]) -> None:
    """One environment's counts of the present stage. labels: sums by arm and outcome."""
    store, deadline = FolderStore(folder), Deadline(PATIENCE_S)
    lineup = lineup_of(run.run, run.stage, VERSIONS)
    counts = Counts(run.stage, run.arm_shares(), VERSIONS, arms)
    store.write(run.run, Item(f"{COUNTS}{lineup}/one", msgspec.json.encode(counts), 1), deadline)
    store.add_label(run.run, Label(lineup, "ab" * 16, labels), deadline)


async def reading(client: httpx.AsyncClient, function: str = "coldframe-predict") -> Any:
    response = await client.get("/_experiment", params={"function": function})
    assert response.status_code == 200, response.text
    return response.json()


# The endpoint.


async def test_a_report_is_that_of_the_command(tmp_path: Path) -> None:
    """The endpoint reads what `coldframe experiment status --json` prints, and changes nothing."""
    run = started(tmp_path)
    labels = {"now/right": 80, "now/wrong": 20, "next/right": 8, "next/wrong": 3}
    count(tmp_path, run, labels, now={"answers": 900}, next={"answers": 100, "errors": 2})
    files = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    async with serving(environ={"COLDFRAME_EXPERIMENTS": f"{tmp_path}/"}) as (_, client):
        first, second = [await reading(client) for _ in range(2)]
    command = [
        sys.executable,
        "-m",
        "coldframe_local.cli",
        "experiment",
        "status",
        "--store",
        f"{tmp_path}/",
        "--json",
    ]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert first == second == {"has_store": True, "report": json.loads(printed), "problem": ""}
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json")} == files


async def test_a_relative_folder_is_the_function_s(tmp_path: Path) -> None:
    """A relative path begins where the function works, not where the emulator was started."""
    (tmp_path / "plain.py").write_text("def handler(event, context): return {}")
    started(tmp_path / "trial")
    own = {"handler": "plain.handler", "task_root": tmp_path, "environ": {"COLDFRAME_EXPERIMENTS": "trial/"}}
    async with serving(**own) as (_, client):
        report = (await reading(client))["report"]
    assert report["experiment"] == "canary"


async def test_a_function_without_a_store_says_so() -> None:
    """Without the setting, no process is started, and the page need not ask again."""
    async with serving() as (_, client):
        answer = await reading(client)
    assert answer == {"has_store": False}


async def test_a_store_without_an_experiment_has_no_report(tmp_path: Path) -> None:
    """A missing document and a broken one mean that there is no experiment."""
    environ = {"COLDFRAME_EXPERIMENTS": f"{tmp_path}/"}
    async with serving(environ=environ) as (_, client):
        empty = await reading(client)
        document = {"revision": 1, "expires_at_s": int(time.time()) + 60, "value": {"run": 3}}
        (tmp_path / "experiment").mkdir()
        (tmp_path / "experiment" / "document.json").write_text(json.dumps(document))
        broken = await reading(client)
    assert empty == broken == {"has_store": True, "report": None, "problem": ""}


async def test_a_store_that_fails_is_named_by_its_failure(tmp_path: Path) -> None:
    """The answer says which call failed and what to check."""
    closed = {"COLDFRAME_EXPERIMENTS": "nowhere", "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:9"}
    async with serving(environ=closed) as (_, client):
        answer = await reading(client)
    assert answer["report"] is None
    assert answer["problem"].startswith("The experiment cannot be read: DynamoDB: ")
    assert answer["problem"].endswith("Check COLDFRAME_EXPERIMENTS.")


async def test_other_requests_are_refused(tmp_path: Path) -> None:
    """Pages of others, other methods and unknown functions get no reading."""
    async with serving(environ={"COLDFRAME_EXPERIMENTS": f"{tmp_path}/"}) as (_, client):
        foreign = await client.get("/_experiment", headers={"origin": "https://elsewhere.example"})
        written = await client.post("/_experiment")
        unknown = await client.get("/_experiment", params={"function": "nobody"})
        nameless = await client.get("/_experiment")
    statuses = [answer.status_code for answer in (foreign, written, unknown, nameless)]
    assert statuses == [403, 405, 404, 404]
    assert "Function not found: nobody" in unknown.json()["detail"]


async def test_a_table_is_read_with_the_function_s_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The template's own table in the emulator's stores: started by a command, read by the console."""
    template = load_template(ROOT / "template.yaml", {"Experiments": "on", "CachePolicy": "off"})
    options = EmulatorOptions(template, port=0, log=lambda line: None)
    async with (
        Emulator(options) as emulator,
        httpx.AsyncClient(base_url=emulator.url, timeout=PATIENCE_S, trust_env=False) as client,
    ):
        name = next(each.name for each in emulator.service.snapshot().functions if "redict" in each.name)
        assert (await reading(client, name))["report"] is None
        with monkeypatch.context() as patch:
            patch.setenv("AWS_ENDPOINT_URL_DYNAMODB", str(emulator.stores.url))
            for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
                patch.setenv(variable, "test")
            patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
            control = Control(TableStore(TABLE, AwsClients(PATIENCE_S)))
            await asyncio.to_thread(control.start, read_experiment(json.dumps(SPLIT).encode()))
        report = (await reading(client, name))["report"]
    assert (report["experiment"], report["state"]) == ("canary", "running")
    assert [arm["name"] for arm in report["arms"]] == ["now", "next"]


# The panel.


async def test_without_an_experiment_there_is_no_panel(page: Page, tmp_path: Path) -> None:
    """A function without the setting is asked about once. A store without an experiment shows nothing."""
    readings: list[str] = []
    page.on("response", lambda response: readings.append(response.url) if "/_exp" in response.url else None)
    for environ in ({}, {"COLDFRAME_EXPERIMENTS": f"{tmp_path}/"}):
        async with serving(environ=environ) as (emulator, _):
            async with page.expect_response("**/_experiment**"):
                await opened(page, emulator)
            await expect(page.locator(".arrivals .note")).to_have_text("0 in all")
            await expect(page.locator("#experiment")).to_be_hidden()
    assert len(readings) == 2


async def test_arms_and_the_decision_are_seen(page: Page, tmp_path: Path) -> None:
    """Shares, answers, errors, p99, accuracy and the sentence; axe has nothing to say, in any light."""
    run = started(tmp_path, criteria={"min_answers": 100_000})
    times = {"ms_20": 95, "ms_40": 5}
    arms = {"now": {"answers": 9000, "ms_20": 9000}, "next": {"answers": 1000, "errors": 3, **times}}
    labels = {"now/right": 370, "now/wrong": 80, "next/right": 45, "next/wrong": 5}
    count(tmp_path, run, labels, **arms)
    await page.emulate_media(reduced_motion="reduce")
    async with serving(environ={"COLDFRAME_EXPERIMENTS": f"{tmp_path}/"}) as (emulator, _):
        await opened(page, emulator)
        panel = page.get_by_role("region", name="Experiment", exact=True)
        await expect(panel).to_contain_text("split · stage 1 of 3 · counts of 1 environment")
        await expect(page.locator("#experiment-state")).to_have_text("running")
        first, second = [
            panel.get_by_role("row", name=name).get_by_role("cell") for name in ("now 90%", "next 10%")
        ]
        await expect(first).to_have_text(
            ["90%", "9,000", "0", "3.3 ms", re.compile("82.2%, from .*370 of 450 labels")]
        )
        await expect(second).to_have_text(
            ["10%", "1,000", "3", "10.6 ms", re.compile("90%, from .*45 of 50 labels")]
        )
        await expect(panel).to_contain_text("It is not yet known which arm is better: ")
        await expect(panel).to_contain_text("The candidate waits: it has given 1,000 of 100,000 answers")
        await panel.get_by_text("Changes so far").click()
        await expect(panel.get_by_role("listitem")).to_contain_text("running, stage 1: started")
        await check_looks(page, "experiment-")


async def test_agreement_and_missing_subjects_are_said(page: Page, tmp_path: Path) -> None:
    """A shadow answers its share beside the first arm; agreement and missing subjects are sentences."""
    run = started(tmp_path, kind="shadow", stages=[0.2], subject="caller")
    shadow = {"answers": 80, "skipped": 5, "compared": 75, "agreed": 60}
    count(tmp_path, run, {}, now={"answers": 80, "without_subject": 7}, next=shadow)
    async with serving(environ={"COLDFRAME_EXPERIMENTS": f"{tmp_path}/"}) as (emulator, _):
        await opened(page, emulator)
        remarks = page.locator("#experiment-remarks")
        await expect(remarks).to_contain_text("The arms agree on 80% of the texts that both answered.")
        await expect(remarks).to_contain_text("7 requests without a subject stayed out.")
        await expect(page.locator("#experiment-arms td:nth-child(3)").last).to_have_text("755 skipped")
        await expect(page.locator("#experiment-arms td:nth-child(2)")).to_have_text(["100%", "20%"])


async def test_interval_is_drawn_at_its_place(page: Page, tmp_path: Path) -> None:
    """The line from 0 to 100 % has the interval of the report and its rate."""
    count(tmp_path, started(tmp_path), {"next/right": 30, "next/wrong": 10}, next={"answers": 100})
    async with serving(environ={"COLDFRAME_EXPERIMENTS": f"{tmp_path}/"}) as (emulator, client):
        await opened(page, emulator)
        low, high = (await reading(client))["report"]["arms"][1]["accuracy_interval"]
        interval = page.locator("#experiment .interval")
        assert float(await interval.get_attribute("x") or "") == pytest.approx(100 * low)
        assert float(await interval.get_attribute("width") or "") == pytest.approx(100 * (high - low))
        await expect(page.locator("#experiment .rate")).to_have_attribute("x", "75")
        await expect(page.locator("#experiment td").last).to_contain_text(
            f"75%, from {100 * low:.1f} to {100 * high:.1f}%"
        )


async def test_an_ended_experiment_says_why(page: Page, tmp_path: Path) -> None:
    """After a way back, the panel has the state and the failed criterion, without a reload."""
    run = started(tmp_path)
    async with serving(environ={"COLDFRAME_EXPERIMENTS": f"{tmp_path}/"}) as (emulator, _):
        await opened(page, emulator)
        await expect(page.locator("#experiment-known")).to_contain_text("No environment has counted")
        reason = "The candidate is sent back: its errors are <b>too many</b>."
        changed = run.changed(time.time(), "sent-back", 0, reason)
        assert Control(FolderStore(tmp_path)).replace(run, changed)
        await expect(page.locator("#experiment-state")).to_have_text("sent back", timeout=PATIENCE_S * 1e3)
        await expect(page.locator("#experiment-decision")).to_have_text(f"It is sent back: {reason}")
        await expect(page.locator("#experiment b")).to_have_count(0)
        shares = page.locator("#experiment-arms td:nth-child(2)")
        await expect(shares).to_have_text(["100%", "0%"])


async def test_a_failing_store_leaves_the_last_report(page: Page, tmp_path: Path) -> None:
    """A problem is said above the table of the last reading, and alone where there was none."""
    started(tmp_path)
    answers: list[dict[str, Any]] = [{"has_store": True, "report": None, "problem": "It fails. Check it."}]
    await page.route("**/_experiment**", fulfil(answers))
    async with serving(environ={"COLDFRAME_EXPERIMENTS": f"{tmp_path}/"}) as (emulator, client):
        good = await reading(client)
        await opened(page, emulator)
        await expect(page.locator("#experiment-problem")).to_have_text("It fails. Check it.")
        await expect(page.locator("#experiment-report")).to_be_hidden()
        answers[:] = [good, {"has_store": True, "report": None, "problem": "It fails. Check it."}]
        await page.reload()
        await expect(page.locator("#experiment-name")).to_have_text("canary")
        await expect(page.locator("#experiment-problem")).to_be_visible(timeout=PATIENCE_S * 1e3)
        await expect(page.locator("#experiment-name")).to_be_visible()


async def test_answers_of_the_real_function_are_counted(page: Page, bundle: Path, tmp_path: Path) -> None:
    """Requests through a real environment show as answers of both arms."""
    started(tmp_path, stages=[0.5])
    real = {
        "handler": "coldframe_functions.predict.app.handler",
        "task_root": ROOT,
        "environ": {"COLDFRAME_MODEL_DIR": str(bundle), "COLDFRAME_EXPERIMENTS": f"{tmp_path}/"},
        "max_environments": 1,
    }
    seen = {"now": 0, "next": 0}
    async with serving(**real) as (emulator, client):
        while not all(seen.values()):
            answer = (await client.post("/v1/predict", json={"text": f"Text {sum(seen.values())}"})).json()
            seen[answer["experiment"]["arm"]] += 1
        await opened(page, emulator)
        answers = page.locator("#experiment-arms td:nth-child(3)")
        await expect(answers).to_have_text([str(number) for number in seen.values()])


def fulfil(answers: list[dict[str, Any]]) -> Callable[[Any], AsyncIterator[None]]:
    """A route that gives each answer once, and the last one for ever."""

    async def answer(route: Any) -> None:
        body = answers.pop(0) if len(answers) > 1 else answers[0]
        await route.fulfill(json=body)

    return answer  # type: ignore[return-value]
