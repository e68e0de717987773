"""Walks in documents: blocks of commands that run in their order, some of them beside a server."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from tests.conftest import ROOT
from tests.support.server_process import ServerProcess


class Block(NamedTuple):
    """Commands of a walk. has_requests: they call a server."""

    has_requests: bool
    commands: str

    def run(self, environ: Mapping[str, str], folder: Path) -> str:
        """Standard output of the commands, which succeed and print what the page says beside them."""
        path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
        command = ["bash", "-euo", "pipefail", "-c", self.commands]
        process = subprocess.run(
            command, cwd=folder, env={**os.environ, **environ, "PATH": path}, capture_output=True, text=True
        )
        assert process.returncode == 0, process.stderr
        for expected in re.findall(r"^# → (.*)$", self.commands, re.MULTILINE):
            assert expected in process.stdout, process.stdout
        return process.stdout

    def run_beside(self, server: ServerProcess, environ: Mapping[str, str], folder: Path) -> str:
        """Like `run`, with the server's port as `PORT`. The server ends in good order."""
        with closing(server):
            server.event("ready")
            output = self.run({**environ, "PORT": str(server.port)}, folder)
            assert server.end() == 0
        return output


def blocks_of(page: str) -> Iterator[Block]:
    """Blocks of a page in docs/ that its walk consists of."""
    text = (ROOT / "docs" / page).read_text()
    for requests, commands in re.findall(r"```sh walk( requests)?\n(.*?)```", text, re.DOTALL):
        yield Block(bool(requests), commands)
