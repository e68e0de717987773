"""A server as a process: from its start to its first answer, what it holds in memory, and its end."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from coldframe.errors import ColdframeError

_START_LIMIT_S = 120.0
_PAUSE_S = 0.002  # between two attempts to reach a server that does not listen yet
_STOP_LIMIT_S = 20.0
_NOT_YET = b"not ready yet"  # MLServer's, with status 400, while its workers load the model
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
    """How a server is started and asked. `$TEXT` in `body` stands for a text."""

    command: Sequence[str]
    cwd: Path
    environ: Mapping[str, str]
    port: int
    path: str
    body: str

    @property
    def url(self) -> str:
        """Where it is asked."""
        return f"http://127.0.0.1:{self.port}{self.path}"

    def ask(self, text: str) -> bytes:
        """The body of a request for one text."""
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
def serve(server: Server, text: str) -> Iterator[Started]:
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
        family: set[int] = set()
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
            family = descendants(process.pid)
            _stop(process, family)


def memory_mb(pid: int) -> float:
    """Memory of a process and all that it started; what they share is counted once."""
    return sum(_proportional_kb(member) for member in descendants(pid) | {pid}) / 1024


def processor_s(pid: int) -> float:
    """Processor time that a process and all that it started took: on a busy machine as on a quiet one."""
    return sum(_ticks(member) for member in descendants(pid) | {pid}) / os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> set[int]:
    """Processes that this one started, and those that they started."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # "pid (name) state ppid …", where the name may hold anything.
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
    found: set[int] = set()
    while more := {child for child, parent in parents.items() if parent in found | {pid}} - found:
        found |= more
    return found


def _first_answer(server: Server, text: str, process: "subprocess.Popen[bytes]") -> bytes:
    ends = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < ends:
        if process.poll() is not None:
            raise ServerFailed(f"{server.command[0]} ended with status {process.returncode}.")
        if (answer := _answer(server, text)) is not None:
            return answer
        time.sleep(_PAUSE_S)
    raise ServerFailed(f"No answer from {server.url} within {_START_LIMIT_S:.0f} s.")


def _answer(server: Server, text: str) -> bytes | None:
    """The answer, if there is one. Until it is ready a server refuses, or says so, or 404, or over 500."""
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


def _ticks(pid: int) -> int:
    """User and system time, its own and that of children that have ended."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(field) for field in fields[11:15])
    return 0


def _proportional_kb(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def _stop(process: "subprocess.Popen[bytes]", family: set[int]) -> None:
    """Asks, waits, and then ends what is left of those that we started, until they are gone."""
    process.send_signal(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_LIMIT_S)
    for member in family | {process.pid}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(member, signal.SIGKILL)
    process.wait()
    ends = time.monotonic() + _STOP_LIMIT_S  # whoever comes next has the machine alone
    while time.monotonic() < ends and any(Path(f"/proc/{member}/exe").exists() for member in family):
        time.sleep(_PAUSE_S)
