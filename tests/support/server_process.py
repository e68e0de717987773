"""The server as a process of its own, for tests: started, asked, ended."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 180  # of a machine that does other things, too


class ServerProcess:
    """`python -m coldframe.server`, or another module that runs it, and what it logs."""

    def __init__(self, model_dir: Path, module: str = "coldframe.server", **environ: str) -> None:
        given = {"COLDFRAME_MODEL_DIR": str(model_dir), "COLDFRAME_HOST": "127.0.0.1", "PORT": "0"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            env=os.environ | given | environ,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.lines: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def event(self, name: str) -> dict[str, Any]:
        """The line of an event; waits for it. Fails when the process ends without."""
        with self._changed:
            found = self._changed.wait_for(lambda: self._find(name) or self._has_ended(), PATIENCE_S)
        line = self._find(name)
        assert found and line is not None, f"no {name!r} in {self.lines}"
        return line

    @property
    def url(self) -> str:
        """Where it listens."""
        return str(self.event("listening")["url"])

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=PATIENCE_S, trust_env=False)

    def metrics(self) -> dict[str, float]:
        """Values by name and labels, as Prometheus reads them."""
        with self.client() as client:
            text = client.get("/metrics").text
        rows = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in rows}

    def end(self, number: int = signal.SIGTERM) -> int:
        """Sends a signal; returns the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """The exit code."""
        code = self.process.wait(PATIENCE_S)
        self._reader.join()
        return code

    def stderr(self) -> str:
        """What it said at its end."""
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def close(self) -> None:
        """Whatever happened, no process is left."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()

    def _find(self, name: str) -> dict[str, Any] | None:
        return next((line for line in self.lines if line.get("event") == name), None)

    def _has_ended(self) -> bool:
        return not self._reader.is_alive() or self._ended

    _ended = False

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(json.loads(line))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


@contextmanager
def serving(model_dir: Path, **environ: str) -> Iterator[ServerProcess]:
    """A server that is ready."""
    with starting(model_dir, **environ) as server:
        server.event("ready")
        yield server


@contextmanager
def starting(model_dir: Path, **environ: str) -> Iterator[ServerProcess]:
    """A server that may not be ready yet, or never will."""
    server = ServerProcess(model_dir, **environ)
    try:
        yield server
    finally:
        server.close()
