"""Chromium with one window for a test, which holds its scripts to what the console promises."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator

import httpx
import pytest
from playwright.async_api import Browser, Page, async_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# No graphics card, no sandbox for root, and nothing sent to anybody.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    """Chromium of this machine."""
    if CHROMIUM is None:
        pytest.skip(
            "The console is NOT tested in a browser: no chromium here. On Debian: apt install chromium"
        )
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        await chromium.close()


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A new window. Whatever a test does in it, no script fails and nothing is asked of other hosts."""
    context = await browser.new_context(viewport=DESKTOP)  # type: ignore[arg-type]
    page = await context.new_page()
    errors: list[str] = []
    hosts: set[str | None] = set()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: hosts.add(httpx.URL(request.url).host))
    yield page
    await context.close()
    assert errors == []
    assert hosts <= {"127.0.0.1"}
