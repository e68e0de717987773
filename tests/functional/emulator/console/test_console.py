"""The console: what its handlers answer, and the page in a real Chromium over real environments."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from playwright.async_api import Page, expect

from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.gateway.definitions import (
    ANY,
    DEFAULT_ROUTE,
    Api,
    ApiKind,
    PayloadFormat,
    Route,
)
from coldframe_local.emulator.options import EmulatorOptions
from coldframe_local.emulator.template.functions.functions import Function
from coldframe_local.emulator.template.template import Template
from tests.conftest import ROOT
from tests.functional.emulator.console.conftest import DESKTOP
from tests.support import emulation, running
from tests.support.emulation import PATIENCE_S, running_pids, until
from tests.support.example import SPACE

pytestmark = [pytest.mark.browser, pytest.mark.anyio]

PAGE = ROOT / "local" / "coldframe_local" / "emulator" / "console" / "page"
SCREENSHOTS = ROOT / "build" / "screenshots"
PHONE = {"width": 360, "height": 740}
LIGHTS: tuple[Literal["light", "dark"], ...] = ("light", "dark")
STAGES = ("cache", "tokenize", "estimate", "encode", "heads")

expect.set_options(timeout=PATIENCE_S * 1000)


def options(**changes: Any) -> EmulatorOptions:
    return running.options([], **{"handler": "handlers.told_or_gate", "max_environments": 10, **changes})


@asynccontextmanager
async def serving(**changes: Any) -> AsyncIterator[tuple[Emulator, httpx.AsyncClient]]:
    """An emulator of this folder's handlers, and a client of it."""
    async with (
        Emulator(options(**changes)) as emulator,
        httpx.AsyncClient(base_url=emulator.url, timeout=PATIENCE_S, trust_env=False) as client,
    ):
        yield emulator, client


async def opened(page: Page, emulator: Emulator) -> None:
    """Opens the console and waits for its first event."""
    await page.goto(f"{emulator.url}/_console")
    await expect(page.locator("#connection")).to_have_text("live")


async def events(client: httpx.AsyncClient) -> AsyncGenerator[Any, None]:
    """The events of the stream, decoded."""
    async with client.stream("GET", "/_events") as response:
        assert response.headers["content-type"] == "text/event-stream"
        async for line in response.aiter_lines():
            if line:
                yield json.loads(line.removeprefix("data: "))


# The handlers.


async def test_page_is_served_under_a_strict_policy() -> None:
    """Nothing inline, nothing from elsewhere, no frame around it, no markup made of strings."""
    async with serving() as (_, client):
        response = await client.get("/_console")
    policy = response.headers["content-security-policy"]
    assert response.status_code == 200
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|\bstyle=|\bon\w+=", response.text)


async def test_every_file_of_the_page_is_served() -> None:
    """Each file that the page or a module of it names is there, in its type, and none is another host's."""
    types = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".html": "text/html"}
    named: set[str] = set()
    async with serving() as (_, client):
        for file in PAGE.iterdir():
            text = file.read_text()
            named |= {Path(name).name for name in re.findall(r'"(?:/_console|\.)/([\w-]+\.\w+)"', text)}
            assert set(re.findall(r"https?://[\w.-]+", text)) <= {"http://www.w3.org", "https://www.w3.org"}
            response = await client.get(f"/_console/{file.name}")
            assert response.status_code == 200
            assert response.headers["content-type"].startswith(types[file.suffix])
    assert named <= {file.name for file in PAGE.iterdir()}
    assert {"console.css", "console.js", "stream.js"} <= named


@pytest.mark.parametrize(
    "path", ["missing.js", "..%2fconsole.py", "%2e%2e/cli.py", "console.css/x", "../cli.py"]
)
async def test_other_files_are_not_served(path: str) -> None:
    """Only the page's own folder is there to be read."""
    async with serving() as (emulator, _):
        host, port = emulator.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        # By hand: a client would tidy the path up.
        writer.write(
            f"GET /_console/{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode()
        )
        answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 404")


async def test_first_event_is_the_whole_picture() -> None:
    """Who connects late sees what there is, and the invocations that led to it."""
    async with serving() as (_, client):
        for _ in range(3):
            await client.get("/")
        stream = events(client)
        event = await anext(stream)
        await stream.aclose()
    (environment,) = event["snapshot"]["environments"]
    assert (environment["state"], environment["invocations"]) == ("READY", 3)
    assert [each["number"] for each in event["invocations"]] == [1, 2, 3]
    assert [each["cold"] for each in event["invocations"]] == [True, False, False]
    cold, warm, _ = event["invocations"]
    assert cold["init_ms"] + cold["duration_ms"] <= cold["latency_ms"]
    assert warm["init_ms"] is None
    assert {each["environment_id"] for each in event["invocations"]} == {environment["id"]}


async def test_many_changes_are_few_events() -> None:
    """Every invocation is told of once and in order, however few events carry them."""
    told: list[int] = []
    received = 0
    async with serving(max_environments=2) as (_, client):
        requests = asyncio.gather(*(client.get("/") for _ in range(100)))
        async for event in events(client):
            received += 1
            told += [each["number"] for each in event["invocations"]]
            if len(told) == 100:
                break
        await requests
    assert told == list(range(1, 101))
    assert received < 50


@pytest.mark.parametrize("path", ["/_events", "/_console", "/_console/console.js"])
async def test_what_is_only_read_takes_no_post(path: str) -> None:
    """Another method is refused by name."""
    async with serving() as (_, client):
        response = await client.post(path, content=b"x")
        head = await client.head("/_events")
    assert response.status_code == head.status_code == 405
    assert "GET" in response.headers["allow"]


async def test_leaving_ends_the_streams() -> None:
    """A reader of events does not keep the emulator from ending."""
    async with httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False) as client:
        async with Emulator(options()) as emulator:
            client.base_url = httpx.URL(emulator.url)
            stream = events(client)
            await anext(stream)
        with pytest.raises(StopAsyncIteration):
            while True:
                await anext(stream)


async def test_reader_that_leaves_leaves_nothing_behind() -> None:
    """No task goes on for a reader who is gone."""
    async with serving() as (_, client):
        before = len(asyncio.all_tasks())
        stream = events(client)
        await anext(stream)
        await stream.aclose()
        await until(lambda: len(asyncio.all_tasks()) <= before)


async def test_burst_is_as_many_requests_at_once(tmp_path: Path) -> None:
    """Fifty at once on a cold function of ten environments: ten are served, forty are throttled."""
    async with serving(environ={"GATE": str(tmp_path)}) as (emulator, client):
        burst = {"count": 50, "path": "/gate?x=1", "body": "{}"}
        sending = asyncio.create_task(client.post("/_console/burst", json=burst))
        await until(lambda: len(running_pids(tmp_path)) == 10)
        await until(lambda: emulator.service.snapshot().functions[0].throttles == 40)
        (tmp_path / "open").touch()
        report = (await sending).json()
    statuses = [answer["status"] for answer in report["answers"]]
    assert (statuses.count(200), statuses.count(429)) == (10, 40)
    assert max(answer["latency_ms"] for answer in report["answers"]) <= report["total_ms"]


@pytest.mark.parametrize(
    "change",
    [
        {"count": 0},
        {"count": 401},
        {"path": "nowhere"},
        {"path": "/_console/burst"},  # one that sends itself
        {"path": "/a b"},
        {"path": "/é"},
        {"path": "/\r\nx: y"},
        {"path": "/\nx:y"},
        {"path": "/a\n"},
        {"method": "GET /\r\n"},
        {"method": "GET\n"},
        {"unknown": 1},
    ],
)
async def test_burst_that_makes_no_sense_is_refused(change: dict[str, Any]) -> None:
    """What cannot be sent is named, and nothing is sent."""
    async with serving() as (emulator, client):
        burst = {"count": 1, "path": "/", "body": ""} | change
        response = await client.post("/_console/burst", json=burst)
        arrivals = emulator.service.snapshot().functions[0].arrivals
    assert response.status_code == 400
    assert response.json()["detail"].startswith("Cannot send this: ")
    assert arrivals == 0


async def test_other_pages_cannot_drive_the_emulator() -> None:
    """A request that another web page sends is refused and changes nothing; a program's is not."""
    burst = {"count": 1, "path": "/", "body": ""}
    concurrency = "/2017-10-31/functions/coldframe-predict/concurrency"
    invoke = "/2015-03-31/functions/coldframe-predict/invocations"
    async with serving() as (emulator, client):
        foreign = {"origin": "http://evil.example"}
        rebound = {"origin": "http://evil.example", "host": "evil.example"}
        for headers in (foreign, rebound, {"origin": "null"}):
            assert (await client.post("/_console/burst", json=burst, headers=headers)).status_code == 403
            assert (await client.post(invoke, json={}, headers=headers)).status_code == 403
            refused = await client.put(concurrency, json={"ReservedConcurrentExecutions": 1}, headers=headers)
            assert refused.status_code == 403
        for path in ("/_console", "/_events", "/_console/burst"):
            assert (await client.get(path, headers={"host": "evil.example"})).status_code == 403
        untouched = emulator.service.snapshot().functions[0]
        own = {"origin": emulator.url}
        accepted = await client.put(concurrency, json={"ReservedConcurrentExecutions": 1}, headers=own)
        program = await client.post(invoke, json={})
    assert (untouched.arrivals, untouched.reserved_concurrency) == (0, None)
    assert (accepted.status_code, program.status_code) == (200, 200)


# The page.


async def test_send_50_at_once_is_seen(page: Page, tmp_path: Path) -> None:
    """Ten environments get busy and then ready; the page says who was cold, throttled, and what it cost."""
    async with serving(environ={"GATE": str(tmp_path)}) as (emulator, _):
        await opened(page, emulator)
        await expect(page.locator("#empty")).to_be_visible()
        await page.get_by_text("What is sent").click()
        await page.get_by_label("POST to").fill("/gate")
        await page.get_by_role("button", name="Send 50 at once").click()
        await expect(page.locator(".tile[data-state=INVOKING]")).to_have_count(10)
        await expect(page.locator("#states")).to_contain_text("10 busy")
        await expect(page.locator(".throttles .value")).to_have_text("40")
        await screenshot(page, "load")
        (tmp_path / "open").touch()
        await expect(page.locator(".tile[data-state=READY]")).to_have_count(10)
        result = page.locator("#burst-result")
        await expect(result).to_contain_text("10 answered, 10 of them cold")
        await expect(result).to_contain_text("40 throttled: the limit is 10 at once")
        await expect(result).to_contain_text(re.compile(r"It cost \$0\.00\d*[1-9]"))
        await expect(page.locator(".strip .bar")).to_have_count(50)
        await expect(page.locator(".strip .init")).to_have_count(10)
        await expect(page.locator(".cold .value")).to_have_text("100%")
        await expect(page.locator(".tile").first).to_contain_text("1 invocation")
        await expect(page.get_by_role("img")).to_have_accessible_name(
            re.compile("latest 50 invocations: 10 cold, 40 throttled")
        )


async def test_cold_start_is_seen_while_it_lasts(page: Page, tmp_path: Path) -> None:
    """Environments are initialising until their module is loaded; then their invocation has an init part."""
    loading = "import os, time\nwhile not os.path.exists({gate!r}): time.sleep(0.005)\n"
    gate = tmp_path / "open"
    source = loading.format(gate=str(gate)) + "def handler(event, context): return {}"
    (tmp_path / "slow.py").write_text(source)
    async with serving(handler="slow.handler", task_root=tmp_path, init_limit_s=PATIENCE_S) as (emulator, _):
        await opened(page, emulator)
        await page.get_by_label("Requests at once").fill("4")
        await page.keyboard.press("Enter")
        await expect(page.locator(".tile[data-state=INIT]")).to_have_count(4)
        await expect(page.locator("#states")).to_contain_text("4 initialising")
        await screenshot(page, "initialising")
        gate.touch()
        await expect(page.locator(".tile[data-state=READY]")).to_have_count(4)
        await expect(page.locator(".strip .init")).to_have_count(4)


async def test_environment_that_dies_is_seen_leaving(page: Page) -> None:
    """A killed environment is shown as stopped before it goes."""
    async with serving() as (emulator, client):
        await client.get("/")
        await opened(page, emulator)
        await expect(page.locator(".tile[data-state=READY]")).to_have_count(1)
        (environment,) = emulator.service.snapshot().environments
        assert environment.pid is not None
        os.kill(environment.pid, signal.SIGKILL)
        await expect(page.locator(".tile[data-state=STOPPED]")).to_have_count(1)
        await expect(page.locator(".tile")).to_have_count(0)
        await expect(page.locator("#empty")).to_be_visible()


async def test_provisioned_concurrency_is_set_from_the_page(page: Page) -> None:
    """Environments are initialised ahead of requests, serve them warm, and go when none is wanted."""
    async with serving() as (emulator, client):
        await opened(page, emulator)
        field = page.get_by_label("Provisioned concurrency")
        await field.fill("2")
        await field.press("Enter")
        await expect(page.locator("#provisioned-note")).to_have_text("READY: 2 of 2 initialised, on live.")
        await expect(page.locator(".tile[data-provisioned]")).to_have_count(2)
        await client.get("/")
        await expect(page.locator(".strip .mark.provisioned")).to_have_count(1)
        await expect(page.locator(".cold .value")).to_have_text("0%")
        emulator.service.concurrency.put_reserved("coldframe-predict", 10)
        await field.fill("11")
        await field.press("Enter")
        await expect(page.locator("#provisioned-note")).to_contain_text("only 10 of the reserved")
        await field.fill("0")
        await field.press("Enter")
        await expect(page.locator(".tile")).to_have_count(0)
        assert emulator.service.snapshot().functions[0].provisioned == ()


async def test_reserved_concurrency_is_set_from_the_page(page: Page) -> None:
    """The limit of the function is what the page was told."""
    async with serving() as (emulator, _):
        await opened(page, emulator)
        field = page.get_by_label("Reserved concurrency")
        await field.fill("3")
        await field.press("Enter")
        await expect(page.locator(".concurrency .note")).to_have_text("of 3, peak 0")
        assert emulator.service.concurrency.get_reserved("coldframe-predict") == 3


async def test_functions_are_shown_one_at_a_time(page: Page) -> None:
    """Of several functions, the one that is chosen is drawn, with what it did before."""
    functions = tuple(
        Function(emulation.function("handlers.nothing", name=name), logical_id=name, alias="live")
        for name in ("first", "second")
    )
    async with serving(template=Template(functions=functions, apis=())) as (emulator, _):
        await emulator.service.invoke("second", "live", b"{}")
        await opened(page, emulator)
        await expect(page.locator(".arrivals .note")).to_have_text("0 in all")
        await expect(page.locator(".tile")).to_have_count(0)
        await page.get_by_label("Function").select_option("second")
        await expect(page.locator(".arrivals .note")).to_have_text("1 in all")
        await expect(page.locator(".tile")).to_have_count(1)
        await expect(page.locator(".strip .bar")).to_have_count(1)
        await page.get_by_label("Function").select_option("first")
        await expect(page.locator(".tile")).to_have_count(0)
        await expect(page.locator(".strip .bar")).to_have_count(0)


async def test_burst_is_told_of_its_own_function(page: Page, tmp_path: Path) -> None:
    """Who looks at another function before the last answer is not told of that one's counts."""
    functions = tuple(
        Function(
            emulation.function("handlers.gate", name=name, environ={"GATE": str(tmp_path)}),
            logical_id=name,
            alias="live",
        )
        for name in ("first", "second")
    )
    route = Route(ANY, DEFAULT_ROUTE, "first", "live", PayloadFormat.V2, timeout_s=30.0)
    template = Template(functions=functions, apis=(Api("local", ApiKind.HTTP, (route,)),))
    async with serving(template=template) as (emulator, _):
        await opened(page, emulator)
        await page.get_by_label("Requests at once").fill("2")
        await page.get_by_role("button", name="Send 2 at once").click()
        await expect(page.locator(".tile[data-state=INVOKING]")).to_have_count(2)
        await page.get_by_label("Function").select_option("second")
        (tmp_path / "open").touch()
        await expect(page.get_by_role("button", name="Send 2 at once")).to_be_visible()
        await expect(page.locator("#burst-result")).to_be_empty()


async def test_request_is_traced_next_to_its_cold_start(page: Page) -> None:
    """The latest request is shown by its stages in order, and the start of its environment beside it."""
    async with serving(handler="handlers.log_stages") as (emulator, client):
        await opened(page, emulator)
        await expect(page.locator("#trace")).to_be_hidden()
        await client.get("/")
        chosen, cold = page.locator("#trace-chosen"), page.locator("#trace-cold")
        await expect(chosen).to_contain_text("Request #1")
        await expect(chosen).to_contain_text("cold in environment #0")
        await expect(cold).to_be_hidden()
        await client.get("/")
        await expect(chosen).to_contain_text("Request #2")
        await expect(chosen.get_by_role("rowheader")).to_have_text(
            ["queue, emulator", "runtime client", "function", "cache", "<img src=x>", "cache"]
        )
        await expect(chosen.locator("img")).to_have_count(0)
        await expect(cold).to_contain_text("The cold start of its environment, request #1:")
        await expect(cold.get_by_role("rowheader", name="init phase")).to_be_visible()
        await expect(page.locator("#trace-note")).to_have_text(f"The trace of request #2 is {'ab' * 16}.")


async def test_request_is_chosen_by_keyboard_or_bar(page: Page) -> None:
    """A choice stays while others end, until the latest is wanted again; its bar has a frame."""
    async with serving(handler="handlers.nothing") as (emulator, client):
        await opened(page, emulator)
        for _ in range(3):
            await client.get("/")
        title = page.locator("#trace-chosen figcaption strong")
        latest = page.get_by_role("button", name="Latest")
        await expect(title).to_contain_text("#3:")
        await page.get_by_role("button", name="Earlier").press("Enter")
        await expect(title).to_contain_text("#2:")
        await expect(latest).to_have_attribute("aria-pressed", "false")
        await client.get("/")
        await expect(page.locator(".strip .bar")).to_have_count(4)
        await expect(title).to_contain_text("#2:")
        await expect(page.locator(".strip .shown")).to_have_attribute("data-number", "2")
        await page.get_by_role("button", name="Later").press("Space")
        await expect(title).to_contain_text("#3:")
        await latest.press("Enter")
        await expect(title).to_contain_text("#4:")
        later = page.get_by_role("button", name="Later")
        await expect(later).to_have_attribute("aria-disabled", "true")
        await later.press("Enter")  # there is none
        await expect(title).to_contain_text("#4:")
        await page.locator(".strip .bar").first.click()
        await expect(title).to_contain_text("#1:")
        await expect(page.locator("#trace-note")).to_contain_text("no line with stages")


async def test_throttled_request_has_no_trace(page: Page) -> None:
    """A refused request says why, and draws nothing."""
    async with serving(handler="handlers.nothing") as (emulator, client):
        emulator.service.concurrency.put_reserved("coldframe-predict", 0)
        await opened(page, emulator)
        await client.get("/")
        await expect(page.locator("#trace-chosen")).to_contain_text(
            "throttled, because of ReservedFunctionConcurrentInvocationLimitExceeded"
        )
        await expect(page.locator("#trace-chosen tbody tr")).to_have_count(0)


async def test_answers_are_text_and_never_markup(page: Page) -> None:
    """What a function answers cannot become an element of the page."""
    async with serving(handler="handlers.label_markup") as (emulator, _):
        await opened(page, emulator)
        await page.get_by_role("button", name="Classify").click()
        await expect(page.locator(".answer .label").first).to_have_text("<img src=x onerror=alert(1)>")
        await expect(page.locator(".answers img")).to_have_count(0)
        await expect(page.locator("#answer-status")).to_contain_text("All agree")


async def test_doubt_is_seen(page: Page) -> None:
    """An answer of 40 % says so beside its label and in words, and its bar has 40 % of the width."""
    async with serving(handler="handlers.unsure") as (emulator, _):
        await opened(page, emulator)
        await page.get_by_role("button", name="Classify").click()
        card = page.locator(".answer[data-head=mlp]")
        await expect(card.locator(".given .value")).to_have_text("40.0%")
        await expect(card.locator(".by")).to_contain_text("unsure")
        share = await card.locator(".probability").first.evaluate(
            "bar => bar.firstChild.getBoundingClientRect().width / bar.getBoundingClientRect().width"
        )
        assert share == pytest.approx(0.4, abs=0.01)


async def test_words_that_decided_are_marked(page: Page) -> None:
    """Marks cover the very code points that the answer names, and become no markup; numbers stand below."""
    async with serving(handler="handlers.explain") as (emulator, _):
        await opened(page, emulator)
        text = "🚀 <i>orbit launch & <img src=x>"
        await page.get_by_label("Text to classify").fill(text)
        await page.get_by_role("button", name="Classify").click()
        await expect(page.locator(".answer")).to_have_count(2)
        await expect(page.locator("mark")).to_have_count(0)
        await page.get_by_label("Mark the words that decided").press("Space")
        await page.get_by_role("button", name="Classify").press("Enter")
        marks = page.locator(".answer[data-head=auto] mark")
        await expect(marks).to_have_text(["<i>orbit", "launch"])
        assert await page.locator(".explained").evaluate("node => node.textContent") == text
        await expect(page.locator(".answers :is(i, img)")).to_have_count(0)
        await expect(marks.last).to_have_attribute("title", "weight +2.50")
        thick, thin = [
            await marks.nth(place).evaluate("node => parseFloat(getComputedStyle(node).borderBlockEndWidth)")
            for place in (1, 0)
        ]
        assert thick > thin  # a sign beside the colour
        weights = page.locator(".answer[data-head=auto] .weights")
        await expect(weights).to_have_text("Weights, exact: launch +2.50 · <i>orbit +0.50 · all else −1.25")
        missing = page.locator(".answer[data-head=mlp] .weights")
        await expect(missing).to_have_text("No words: the time was too short.")


async def test_long_label_can_be_read(page: Page) -> None:
    """A label that is cut is there whole as a tooltip."""
    async with serving(handler="handlers.unsure") as (emulator, _):
        await opened(page, emulator)
        await page.get_by_role("button", name="Classify").click()
        name = page.locator(".answer[data-head=mlp] li .name")
        await expect(name).to_have_attribute("title", re.compile("no questions about .* renewed"))


async def test_version_of_the_model_is_shown(page: Page) -> None:
    """Who answers has a name and a version: twelve digits of it, and all of them as a tooltip."""
    async with serving(handler="handlers.unsure") as (emulator, _):
        await opened(page, emulator)
        await page.get_by_role("button", name="Classify").click()
        status = page.locator("#answer-status")
        await expect(status).to_contain_text("contracts, version sha256:0123456789ab.")
        await expect(status).to_have_attribute("title", "sha256:" + "0123456789abcdef" * 4)


async def test_request_is_copied_as_curl(page: Page) -> None:
    """What is copied is the request of the playground, quoted for a shell."""
    text = 'It\'s "quoted" $HOME `id` \\n'
    async with serving(handler="handlers.unsure") as (emulator, _):
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await opened(page, emulator)
        await page.get_by_label("Text to classify").fill(text)
        await page.get_by_role("button", name="Copy as curl").click()
        await expect(page.locator("#answer-status")).to_have_text("Copied.")
        command = shlex.split(await page.evaluate("() => navigator.clipboard.readText()"))
    assert command[:2] == ["curl", f"{emulator.url}/v1/predict"]
    assert json.loads(command[command.index("--data") + 1])["text"] == text
    assert command[command.index("--header") + 1] == "content-type: application/json"


async def test_request_that_cannot_be_copied_is_shown(page: Page) -> None:
    """Where a browser gives no clipboard, the command is there to be selected."""
    async with serving() as (emulator, _):
        await page.add_init_script("delete Navigator.prototype.clipboard")
        await opened(page, emulator)
        await page.get_by_role("button", name="Copy as curl").click()
        await expect(page.locator("#answer-status")).to_contain_text(f"curl '{emulator.url}/v1/predict'")


async def test_playground_is_first_on_a_phone(page: Page) -> None:
    """On a narrow page the text to classify comes before all figures."""
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    async with serving() as (emulator, _):
        await opened(page, emulator)
        tops = [
            await page.locator(selector).evaluate("node => node.getBoundingClientRect().top")
            for selector in ("#playground", "#figures", "#environments")
        ]
    assert tops == sorted(tops)


async def test_model_with_fewer_heads(page: Page) -> None:
    """A model that refuses a head is asked once which it has; from then on the playground asks those."""
    async with serving(handler="handlers.two_heads") as (emulator, _):
        await opened(page, emulator)
        for arrivals in (3, 4):  # refused, the list of models, answered; answered
            await page.get_by_role("button", name="Classify").click()
            await expect(page.locator(".arrivals .note")).to_have_text(f"{arrivals} in all")
            await expect(page.locator(".answer h3")).to_have_text(["auto", "mlp"])
            await expect(page.locator("#waterfall")).to_be_visible()


async def test_cold_start_is_asked_for_nothing_else(page: Page) -> None:
    """Where every head answers, Classify is one request, so that a cold start shows what it costs."""
    async with serving(handler="handlers.label_markup") as (emulator, _):
        await opened(page, emulator)
        await page.get_by_role("button", name="Classify").click()
        await expect(page.locator(".answer")).to_have_count(2)
        await expect(page.locator(".arrivals .note")).to_have_text("1 in all")


async def test_function_that_classifies_nothing(page: Page) -> None:
    """Where another function answers the playground's route, the page says so, and nothing else."""
    async with serving() as (emulator, _):
        await opened(page, emulator)
        await page.get_by_role("button", name="Classify").click()
        await expect(page.locator("#answer-status")).to_contain_text("no classifier")
        await expect(page.locator(".answer")).to_have_count(0)


async def test_function_without_the_route_is_said(page: Page) -> None:
    """The playground shows the status of a function that does not classify."""
    async with serving(handler="handlers.refuse") as (emulator, _):
        await opened(page, emulator)
        await page.get_by_role("button", name="Classify").click()
        await expect(page.locator("#answer-status")).to_contain_text("no such route")


async def test_lost_connection_is_said_and_made_again(page: Page) -> None:
    """Without its emulator the page says so; with the next one it starts from what that one has."""
    async with serving() as (emulator, client):
        port = int(emulator.url.rpartition(":")[2])
        await client.get("/")
        await opened(page, emulator)
        await expect(page.locator(".tile")).to_have_count(1)
    banner = page.get_by_role("alert")
    await expect(banner).to_contain_text(f"The emulator at 127.0.0.1:{port} does not answer")
    await screenshot(page, "lost")
    await page.get_by_role("button", name="Send 50 at once").click()
    await expect(page.locator("#burst-result")).to_contain_text("The emulator does not answer")
    async with serving(port=port):
        await expect(page.locator("#connection")).to_have_text("live")
        await expect(banner).to_be_hidden()
        await expect(page.locator(".tile")).to_have_count(0)
        await expect(page.locator(".arrivals .note")).to_have_text("0 in all")


async def test_page_works_by_keyboard(page: Page) -> None:
    """The first stop skips to the environments, every stop is seen, and Enter sends."""
    async with serving() as (emulator, _):
        await opened(page, emulator)
        await page.keyboard.press("Tab")
        await expect(page.locator(":focus")).to_have_text("Skip to the environments")
        await page.keyboard.press("Enter")
        await expect(page.locator("#environments")).to_be_focused()
        for name in ("burst-count", "burst-send"):
            await page.keyboard.press("Tab")
            focused = page.locator(f"#{name}:focus-visible")
            await expect(focused).to_have_css("outline-style", "solid")
        await page.locator("#burst-count").fill("4")
        await page.keyboard.press("Enter")
        await expect(page.locator("#burst-result")).to_contain_text("4 answered")


async def test_nothing_moves_for_who_asked_for_that(page: Page, tmp_path: Path) -> None:
    """With prefers-reduced-motion no animation runs, also not for what happens."""
    await page.emulate_media(reduced_motion="reduce")
    async with serving(environ={"GATE": str(tmp_path)}) as (emulator, client):
        await opened(page, emulator)
        requests = asyncio.gather(*(client.get("/gate") for _ in range(3)))
        await expect(page.locator(".tile[data-state=INVOKING]")).to_have_count(3)
        (tmp_path / "open").touch()
        await requests
        await expect(page.locator(".tile[data-state=READY]")).to_have_count(3)
        running = await page.evaluate(
            "() => document.getAnimations().filter((each) => each instanceof CSSAnimation).length"
        )
    assert running == 0


async def screenshot(page: Page, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


async def check_looks(page: Page, name: str) -> None:
    """Nothing is inaccessible or too wide, on a desktop and a phone, in both lights. Leaves pictures.

    name: beginning of the pictures' names.
    """
    for width, size in (("", DESKTOP), ("-phone", PHONE)):
        await page.set_viewport_size(size)  # type: ignore[arg-type]
        for light in LIGHTS:
            await page.emulate_media(color_scheme=light)
            assert await violations(page) == [], f"{light}{width}"
            await screenshot(page, f"{name}{light}{width}")
        overflow = await page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0, width


async def violations(page: Page) -> list[str]:
    """What axe-core finds against WCAG 2.2 AA and its best practices."""
    await page.evaluate(AXE_FILE_PATH.read_text())
    found = await page.evaluate("() => axe.run()")
    return [
        f"{rule['id']}: {node['html'][:160]} {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


async def test_real_function_in_every_light_and_width(page: Page, bundle: Path) -> None:
    """The playground classifies with all heads and shows where the time went; axe finds nothing to mend."""
    real = {
        "handler": "coldframe_functions.predict.app.handler",
        "task_root": ROOT,
        "environ": {"COLDFRAME_MODEL_DIR": str(bundle)},
        "max_environments": 3,
    }
    await page.emulate_media(reduced_motion="reduce")  # colours are judged, not what is between two of them
    async with serving(**real) as (emulator, _):
        await opened(page, emulator)
        assert await violations(page) == []
        await screenshot(page, "empty")
        await page.get_by_label("Text to classify").fill("The shuttle reached orbit after a perfect launch")
        await page.get_by_role("button", name="Classify").click()
        await expect(page.locator(".answer")).to_have_count(6)
        await expect(page.locator(".answer .label")).to_have_text([SPACE] * 6)
        await expect(page.locator(".answer[data-head=auto] .by")).to_have_text("by the estimator")
        for stage in (
            "gateway, network",
            "init phase",
            "runtime client",
            "tokenize",
            "estimate",
            "encode",
            "heads",
        ):
            await expect(
                page.locator("#waterfall").get_by_role("rowheader", name=stage, exact=True)
            ).to_be_visible()
        rows = page.locator("#trace-chosen").get_by_role("rowheader")
        await expect(rows).to_have_text(
            ["queue, emulator", "init phase", "runtime client", "function", *STAGES]
        )
        await expect(page.locator("#waterfall figcaption")).to_contain_text("cold start in environment #0")
        await page.get_by_role("button", name="Classify").click()
        await expect(page.locator("#waterfall figcaption")).to_contain_text("warm start in environment #0")
        await page.get_by_label("Mark the words that decided").check()
        await page.get_by_role("button", name="Classify").click()
        await expect(page.locator(".answer .explained")).to_have_count(6)
        await expect(page.locator(".answer[data-head=auto] mark").nth(1)).to_be_visible()
        await expect(rows).to_have_text(["queue, emulator", "runtime client", "function", *STAGES, "explain"])
        await expect(page.locator("#trace-cold")).to_be_visible()
        await page.get_by_label("Requests at once").fill("12")
        await page.get_by_role("button", name="Send 12 at once").click()
        await expect(page.locator("#burst-result")).to_contain_text("12 requests in")
        await check_looks(page, "")


# What if.


async def asked(client: httpx.AsyncClient, **changes: Any) -> httpx.Response:
    body = {
        "function": "coldframe-predict",
        "trace": "recorded",
        "lever": "on demand",
        "level": 0,
        "memory_mb": 1769,
    }
    return await client.post("/_what-if", json=body | changes)


async def test_recorded_traffic_is_simulated_as_it_was_measured() -> None:
    """What was recorded is simulated whole, with the emulator's p50; no change changes nothing."""
    async with serving(handler="handlers.nothing") as (_, client):
        for _ in range(30):
            await client.get("/")
        await asyncio.gather(*(client.get("/") for _ in range(6)))
        found = (await asked(client)).json()
    measured, simulated = found["measured"], found["as_it_is"]
    assert measured["invocations"] == simulated["invocations"] == 36
    assert simulated["p50_ms"] == pytest.approx(measured["p50_ms"], rel=0.05)
    assert simulated == found["what_if"]
    assert found["now"] == {"lever": "on demand", "level": 0, "memory_mb": 1769}


async def test_every_choice_can_be_simulated() -> None:
    """All traffic and all levers that GET lists; what is provisioned ends cold starts, and costs."""
    async with serving(handler="handlers.nothing") as (_, client):
        await client.get("/")
        choices = (await client.get("/_what-if")).json()
        assert {"recorded", "office-day", "200 a second"} <= set(choices["traces"])
        for trace in choices["traces"]:
            for lever in choices["levers"]:
                response = await asked(client, trace=trace, lever=lever, level=2)
                assert response.status_code == 200, response.text
        found = (await asked(client, trace="office-day", lever="provisioned", level=20)).json()
        held, expected = [
            (await asked(client, trace="office-day", lever=lever, level=20)).json()["what_if"]
            for lever in ("pings", "predicted pings")
        ]
    assert expected["cold_share"] < found["as_it_is"]["cold_share"]
    assert expected["month_usd"] < held["month_usd"]  # it holds twenty when twenty are expected
    assert found["what_if"]["cold_share"] < found["as_it_is"]["cold_share"]
    assert found["what_if"]["month_usd"] > found["as_it_is"]["month_usd"]
    assert found["measured"] is None


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({}, 400, "Nothing has been recorded yet"),
        ({"trace": "../pyproject"}, 400, "There is no traffic"),
        ({"trace": "office-day", "lever": "hope"}, 400, "on demand, pings"),
        ({"trace": "office-day", "level": -1}, 400, "level"),
        ({"trace": "office-day", "memory_mb": 1}, 400, "memory_mb"),
        ({"trace": "office-day", "function": "nobody"}, 400, "Function not found"),
    ],
)
async def test_what_cannot_be_simulated_is_said(changes: dict[str, Any], status: int, said: str) -> None:
    """With what was expected."""
    async with serving() as (_, client):
        response = await asked(client, **changes)
    assert response.status_code == status
    assert said in response.json()["detail"]


async def test_other_pages_cannot_simulate() -> None:
    """Pages of other hosts cannot use any of the emulator's own paths."""
    async with serving() as (_, client):
        response = await client.get("/_what-if", headers={"origin": "https://elsewhere.example"})
    assert response.status_code == 403


async def test_what_if_is_seen_beside_what_was_measured(page: Page) -> None:
    """A tab of its own: another setting is drawn at once, and axe finds nothing to mend, in any light."""
    await page.emulate_media(reduced_motion="reduce")
    async with serving(handler="handlers.nothing") as (emulator, client):
        await asyncio.gather(*(client.get("/") for _ in range(5)))
        await opened(page, emulator)
        await page.get_by_role("tab", name="Live").focus()
        await page.keyboard.press("ArrowRight")
        await expect(page.get_by_role("tab", name="What if")).to_be_focused()
        await expect(page.locator("#live")).to_be_hidden()
        cold = page.get_by_role("row", name="Cold starts").get_by_role("cell")
        await expect(cold).to_have_text(["100%", "100%", "100%", "none"])
        await page.get_by_label("Against cold starts").select_option("provisioned")
        await page.get_by_role("slider").fill("5")
        await expect(page.get_by_role("row", name="USD a month").get_by_role("cell").last).to_contain_text(
            "+"
        )
        await page.locator("#what-if-trace").select_option("office-day")
        await expect(page.locator("#what-if-status")).to_contain_text("1,713 requests")
        await check_looks(page, "what-if-")
        await page.reload()
        await expect(page.locator("#what-if-status")).to_contain_text("requests")


async def test_what_if_without_traffic_says_so(page: Page) -> None:
    """Nothing was recorded: the page says what to do."""
    async with serving() as (emulator, _):
        await opened(page, emulator)
        await page.get_by_role("tab", name="What if").click()
        await expect(page.locator("#what-if-status")).to_contain_text(
            "send some requests, or choose other traffic"
        )
        await expect(page.locator("#what-if-table")).to_be_hidden()
