"""`coldframe up --reload`: changed code is loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.options import EmulatorOptions
from coldframe_local.emulator.template.template import load_template

pytestmark = pytest.mark.anyio

PATIENCE_S = 60.0
TEMPLATE = """
Resources:
  F:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: code
      Handler: app.handler
      Runtime: python3.13
      Layers: [!Ref L]
      Events: {Any: {Type: HttpApi}}
  L: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: layer}}
"""


def write_handler(folder: Path, answer: str) -> None:
    (folder / "code" / "app.py").write_text(
        f"import shared\ndef handler(event, context):\n    return {answer!r} + shared.word\n"
    )


async def until(change: Callable[[], object], condition: Callable[[], Awaitable[bool]]) -> None:
    """Changes and asks, again and again: a watcher that has yet to start misses the first change."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            change()
            if await condition():
                return


async def test_changed_code_is_loaded(tmp_path: Path) -> None:
    """Function and layer are loaded anew; a syntax error is a logged 502 until it is corrected."""
    lines: list[str] = []
    for folder in ("code", "layer/python"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "template.yaml").write_text(TEMPLATE)
    shared = tmp_path / "layer" / "python" / "shared.py"
    shared.write_text("word = '!'")
    write_handler(tmp_path, "first")
    options = EmulatorOptions(
        port=0, template=load_template(tmp_path / "template.yaml"), reload=True, log=lines.append
    )
    async with (
        Emulator(options) as emulator,
        httpx.AsyncClient(base_url=emulator.url, timeout=PATIENCE_S, trust_env=False) as web,
    ):

        async def answers(text: str) -> bool:
            return (await web.get("/")).text == text

        async def is_broken() -> bool:
            return (await web.get("/")).status_code == 502

        assert await answers("first!")
        await until(lambda: write_handler(tmp_path, "second"), lambda: answers("second!"))
        await until(lambda: shared.write_text("word = '?'"), lambda: answers("second?"))
        await until(lambda: shared.write_text("word = ("), is_broken)
        await until(lambda: shared.write_text("word = '.'"), lambda: answers("second."))
    assert any("Code of F has changed (app.py)" in line for line in lines)
    assert any(line.endswith("Error Type: Runtime.UserCodeSyntaxError") for line in lines)
