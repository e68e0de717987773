"""A server as a process: from its start to its first answer, what it holds in memory, and its end."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import psutil

from coldframe.errors import ColdframeError
from coldframe_bench.loader.open_loop import Load, send_closed
from coldframe_bench.targets.cores import loader_core, target_cores
from coldframe_local.paths import ROOT

_START_LIMIT_S = 120.0
_PAUSE_S = 0.002  # between two attempts to reach a server that does not listen yet
_STOP_LIMIT_S = 20.0
_NOT_YET = b"not ready yet"  # MLServer's, with status 400, while its workers load the model
_ADDRESS = re.compile(r"(?:listening|unning) on (http://127\.0\.0\.1:\d+)")
# The API's throttling, which protects an account, is not what is measured.
_WITHOUT_THROTTLING = ("--parameter", "ThrottleRate=10000", "--parameter", "ThrottleBurst=10000")


def local_api(port: int) -> list[str]:
    """The command that serves the template here. port: 0 for a free one."""
    program = str(Path(sys.executable).parent / "coldframe")
    return [program, "up", "--port", str(port), *_WITHOUT_THROTTLING]


class ServerFailed(ColdframeError):
    """A server did not start, or does not answer as it should."""


@dataclass(frozen=True)
class Server:
    """How a server is started and asked, under its title in tables. `$TEXT` in `body` stands for a text."""

    command: Sequence[str]
    cwd: Path
    environ: Mapping[str, str]
    port: int
    path: str
    body: str
    title: str = ""

    @property
    def url(self) -> str:
        """Where it is asked."""
        return f"http://127.0.0.1:{self.port}{self.path}"

    def ask(self, text: str | Sequence[str]) -> bytes:
        """The body of a request for one text, or for several where the body has a list."""
        return self.body.replace("$TEXT", json.dumps(text)).encode()


@dataclass(frozen=True)
class Started:
    """A server that has answered. cold_ms: from the call that spawned it to that answer."""

    pid: int
    cold_ms: float
    answer: bytes


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def listening(*arguments: str) -> Iterator[str]:
    """The address that a Python program prints once it listens; the program is ended afterwards.

    Raises ServerFailed where it ends before.
    """
    command, environ = [sys.executable, *arguments], {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, env=environ, stdout=pipe, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            addresses = (_ADDRESS.search(line) for line in process.stdout or ())
            if (address := next(filter(None, addresses), None)) is None:
                raise ServerFailed(f"`python {' '.join(arguments[:2])}` does not listen. Run it to see why.")
            # Its log is read as a terminal would read it, by a process that does nothing else.
            with subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL):
                try:
                    yield address[1]
                finally:  # its output ends with it, and the reader with that
                    process.terminate()
                    process.wait()
        finally:
            process.kill()


@contextlib.contextmanager
def serve(server: Server, text: str | Sequence[str]) -> Iterator[Started]:
    """Starts a server and has it answer one text; ends it and all that it started.

    Raises ServerFailed, with the end of its log, where it does not answer.
    """
    with tempfile.TemporaryFile() as log:
        called = time.monotonic()
        process = subprocess.Popen(
            server.command,
            cwd=server.cwd,
            env=dict(server.environ),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            try:
                answer = _first_answer(server, text, process)
                cold_ms = (time.monotonic() - called) * 1e3
            except ServerFailed as exc:
                log.seek(0)
                written = log.read().decode(errors="replace").strip()[-1500:]
                raise ServerFailed(f"{exc}\n{written}") from exc
            yield Started(process.pid, cold_ms, answer)
        finally:
            _stop(process, descendants(process.pid))


@contextlib.contextmanager
def served(server: Server, text: str | Sequence[str]) -> Iterator[None]:
    """As `serve`. The server has all cores but the last, which this process has."""
    with target_cores(), serve(server, text), loader_core():
        yield


def full_load(server: Server, texts: Sequence[str | Sequence[str]], callers: int) -> float:
    """Requests that are answered per second, by as many callers at once."""
    load = Load(server.title, server.url, 0.0, (), [server.ask(text) for text in texts], timeout_s=60.0)
    records = send_closed(load, callers).records
    right = sum(record.status == HTTPStatus.OK for record in records)
    return right / max(record.due_s + record.latency_ms / 1e3 for record in records)


def memory_mb(pid: int) -> float:
    """Memory of a process and all that it started; what they share is counted once."""
    return sum(_of_each(pid, _proportional_bytes)) / 2**20


def processor_s(pid: int) -> float:
    """Processor time that a process and all that it started took: on a busy machine as on a quiet one."""
    return sum(_of_each(pid, lambda process: sum(process.cpu_times()[:4])))


def descendants(pid: int) -> list[psutil.Process]:
    """Processes that this one started, and their descendants."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children(recursive=True)
    return []


def _of_each(pid: int, measure: Callable[[psutil.Process], float]) -> Iterator[float]:
    """Measurements of a process and its descendants, as far as they still run."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in (psutil.Process(pid), *descendants(pid)):
            with contextlib.suppress(psutil.NoSuchProcess):
                yield measure(process)


def _proportional_bytes(process: psutil.Process) -> float:
    """Each page divided by the number of processes that share it, where the system says so."""
    held = process.memory_full_info()
    return float(getattr(held, "pss", held.uss))


def _first_answer(server: Server, text: str | Sequence[str], process: "subprocess.Popen[bytes]") -> bytes:
    ends = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < ends:
        if process.poll() is not None:
            raise ServerFailed(f"{server.command[0]} ended with status {process.returncode}.")
        if (answer := _answer(server, text)) is not None:
            return answer
        time.sleep(_PAUSE_S)
    raise ServerFailed(f"No answer from {server.url} within {_START_LIMIT_S:.0f} s.")


def _answer(server: Server, text: str | Sequence[str]) -> bytes | None:
    """The answer of a server that is ready. Before, it refuses, says "not ready", or answers 404 or 5xx."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=_START_LIMIT_S)
    try:
        connection.request("POST", server.path, server.ask(text), {"content-type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
    if response.status in (400, 401, 405, 415, 422) and _NOT_YET not in answer:
        raise ServerFailed(f"{server.url} answers {response.status}: {answer[:300].decode(errors='replace')}")
    return answer if response.status == 200 else None


def _stop(process: "subprocess.Popen[bytes]", family: Sequence[psutil.Process]) -> None:
    """Asks the processes that we started to end, waits, and then kills the remaining ones."""
    process.send_signal(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_LIMIT_S)
    process.kill()
    for member in family:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            member.kill()
    process.wait()
    ends = time.monotonic() + _STOP_LIMIT_S  # whoever comes next has the machine alone
    while time.monotonic() < ends and any(_runs(member) for member in family):
        time.sleep(_PAUSE_S)


def _runs(process: psutil.Process) -> bool:
    """Not a zombie either, which only waits to be reaped by a parent that is not us."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
