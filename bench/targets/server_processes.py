"""Servers as their image runs them, each a process of its own on this machine."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from local.paths import ROOT, python_path

_PATIENCE_S = 60


class ServerFailed(Exception):
    """A server ended before it was ready; the text is what it said."""


@contextmanager
def server_process(model_dir: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """The address of a server that is ready, for as long as the block. Raises ServerFailed."""
    given = {
        "COLDFRAME_MODEL_DIR": str(model_dir),
        "COLDFRAME_HOST": "127.0.0.1",
        "COLDFRAME_LOG_LEVEL": "off",
        "PORT": "0",
        "PYTHONPATH": python_path(),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "coldframe.server"],
        cwd=ROOT,
        env=os.environ | given | dict(environ),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield _address_when_ready(process)
    finally:
        process.terminate()
        process.wait(_PATIENCE_S)
        if process.stdout is not None:
            process.stdout.close()


def _address_when_ready(process: "subprocess.Popen[str]") -> str:
    address, said = "", ""
    for said in process.stdout or ():
        line = json.loads(said)
        if line["event"] == "listening":
            address = line["url"]
        elif line["event"] == "ready":
            return address
    raise ServerFailed(f"The server ended before it was ready. It said: {said}")
