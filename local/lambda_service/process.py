"""The operating system's side of an execution environment: spawn, log pipe, memory, kill."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import resource
import shutil
import signal
import subprocess
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from coldframe.capacity.limits import FILES, INIT, INIT_AHEAD

Log = Callable[[str], None]

ACCOUNT_ID = "123456789012"

# Without these an interpreter may not find its programs, native libraries or a writable folder.
_PASSED_THROUGH = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")
_PROJECT_PREFIX = "COLDFRAME_"
_PIPE_BYTES = 65536  # as much as a pipe holds
_LINE_BYTES = 1024 * 1024  # a longer line is logged in parts: it may never end
_PROBE_TIMEOUT_S = 10
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FunctionSettings:
    """A version of a function as the Lambda service knows it.

    task_root: what is /var/task on Lambda; `python` folders of the layers beside it are /opt/python.
    environ: the function's own variables.
    architecture: "x86_64" or "arm64", for its price.
    cpu_from_memory: the CPU is in proportion to memory during an invocation.
    freeze: nothing of the function runs between invocations.
    init_limit_s: an on-demand init phase is stopped after this, and run again inside the invocation.
    provisioned_init_limit_s: the same for provisioned environments, unless the timeout is longer.
    """

    handler: str
    task_root: Path
    memory_mb: int
    timeout_s: float
    environ: Mapping[str, str] = field(default_factory=dict)
    name: str = "coldframe-predict"
    version: str = "$LATEST"
    architecture: str = "x86_64"
    cpu_from_memory: bool = False
    freeze: bool = False
    init_limit_s: float = INIT.value
    provisioned_init_limit_s: float = INIT_AHEAD.value

    @property
    def region(self) -> str:
        """The AWS region that the function believes to be in."""
        return self.environ.get("AWS_REGION", "us-east-1")

    def arn(self, qualifier: str | None = None) -> str:
        """The function's name for all of AWS, with the qualifier where one is given."""
        unqualified = f"arn:aws:lambda:{self.region}:{ACCOUNT_ID}:function:{self.name}"
        return f"{unqualified}:{qualifier}" if qualifier else unqualified


def function_environ(own: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, str]:
    """The function's variables: its `own`, over the few that a developer's shell may pass on."""
    passed = {
        name: value
        for name, value in inherited.items()
        if name in _PASSED_THROUGH or name.startswith(_PROJECT_PREFIX)
    }
    return passed | dict(own)


def runtime_environ(function: FunctionSettings, log_stream: str, initialization_type: str) -> dict[str, str]:
    """Variables of an environment's process; Lambda's reserved ones win over the function's.

    AWS_LAMBDA_RUNTIME_API is not among them: each process has its own.
    initialization_type: "on-demand" or "provisioned-concurrency".
    Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html, read 2026-11.
    """
    layers = sorted(str(folder) for folder in function.task_root.glob("layers/*/python"))
    defaults = {"LANG": "C.UTF-8", "PYTHONPATH": os.pathsep.join(layers)}
    reserved = {
        "_HANDLER": function.handler,
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_VERSION": function.version,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
        "AWS_LAMBDA_INITIALIZATION_TYPE": initialization_type,
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{function.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": log_stream,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_python{sys.version_info.major}.{sys.version_info.minor}",
        "AWS_REGION": function.region,
        "AWS_DEFAULT_REGION": function.region,
        "LAMBDA_TASK_ROOT": str(function.task_root),
        "TZ": ":UTC",
    }
    return defaults | dict(function.environ) | reserved


async def spawn_runtime(function: FunctionSettings, environ: Mapping[str, str], output: int) -> Process:
    """Starts AWS's runtime client on the function's handler, in a process group of its own.

    output: file descriptor for stdout and stderr together, so that their order is kept.
    A group of its own keeps a terminal's Ctrl-C away from the function (the emulator
    stops it in its own order) and lets `kill_group` reach whatever the function started.
    """
    return await asyncio.create_subprocess_exec(
        *die_with_parent(),
        sys.executable,
        "-m",
        "awslambdaric",
        function.handler,
        stdin=DEVNULL,
        stdout=output,
        stderr=output,
        cwd=function.task_root,
        env=dict(environ),
        start_new_session=True,
    )


def raise_file_limit() -> None:
    """As many open files as this process may have: an environment takes seven of the emulator's."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # macOS calls its hard limit infinite and then refuses it.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def limit_files(pid: int) -> None:
    """Lambda's limit of open files for an environment's process, where the system lets us (Linux)."""
    if sys.platform == "linux":
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (FILES.value, FILES.value))


def kill_group(pid: int) -> None:
    """SIGKILL to a process and all that it started: Lambda gives a runtime no other goodbye."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def freeze_group(pid: int, *, frozen: bool) -> None:
    """Stops a process and all that it started, or lets them go on."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGSTOP if frozen else signal.SIGCONT)


def exit_reason(returncode: int) -> str:
    """How a process ended, in the words of Lambda's log."""
    if returncode >= 0:
        return f"exit status {returncode}"
    return f"signal: {signal.strsignal(-returncode) or -returncode}".lower()


class MemoryMeter:
    """The memory of one process, read from files that stay open: it is asked on every request."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._status = _open_proc(pid, "status")
        self._statm = _open_proc(pid, "statm")

    def peak_mb(self) -> int | None:
        """The most that the process has held so far, in whole MB; None once it is gone."""
        if self._status is None:
            return _ps_memory_mb(self._pid)
        _, found, rest = _read_proc(self._status).partition(b"VmHWM:")
        return _whole_mb(rest.split(None, 1)[0]) if found else None

    def resident_mb(self) -> int | None:
        """What it holds now, in whole MB; None once it is gone, or without /proc."""
        if self._statm is None:
            return None
        fields = _read_proc(self._statm).split()
        return -(-int(fields[1]) * _PAGE_BYTES // _MB) if fields else None

    def close(self) -> None:
        """Frees the files."""
        for file in (self._status, self._statm):
            if file is not None:
                os.close(file)
        self._status = self._statm = None


def _open_proc(pid: int, name: str) -> int | None:
    try:
        return os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _read_proc(file: int) -> bytes:
    try:
        return os.pread(file, 4096, 0)
    except ProcessLookupError:
        return b""


def _ps_memory_mb(pid: int) -> int | None:
    """Where there is no /proc (macOS): what the process holds now, a lower bound of its peak."""
    if Path("/proc/self").exists():
        return None
    answer = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=False)
    return _whole_mb(answer.stdout.strip()) if answer.stdout.strip() else None


def _whole_mb(kilobytes: bytes) -> int:
    return -(-int(kilobytes) // 1024)


@functools.cache
def die_with_parent() -> tuple[str, ...]:
    """A command prefix that ties a process's life to the emulator's, where the system has one.

    An emulator that gets SIGKILL cannot stop its environments. An idle one leaves by
    itself when its Runtime API disappears, but one in the middle of an invocation would
    work on, perhaps for ever. Linux's parent death signal covers that; util-linux's
    `setpriv` sets it and then becomes the interpreter, so there is no extra process and
    nothing runs between fork and exec in this one. Tried out once, because other systems
    ship a `setpriv` without the option.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return ()
    prefix = (setpriv, "--pdeathsig", "KILL")
    try:
        subprocess.run(
            [*prefix, setpriv, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=_PROBE_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return prefix


class LogPipe:
    """The output of an environment, line by line, as the process writes it."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._unfinished = b""
        self._reader, self.writer = os.pipe()
        self._open = True
        os.set_blocking(self._reader, False)
        asyncio.get_running_loop().add_reader(self._reader, self._read)

    def close_writer(self) -> None:
        """Once the process holds its own copy: the pipe ends when the process does."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def drain(self) -> None:
        """Logs all that was written so far, an unfinished last line included.

        Called before END and REPORT, so that an invocation's lines come before them. One
        read is enough, and safe from a function that writes without end.
        """
        self._read()
        if self._unfinished:
            self._emit(self._unfinished)
            self._unfinished = b""

    def close(self) -> None:
        """Logs the rest and frees both ends."""
        self.drain()
        self.close_writer()
        self._close_reader()

    def _read(self) -> None:
        """Logs the lines at hand, if any."""
        if not self._open:
            return
        try:
            chunk = os.read(self._reader, _PIPE_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self._close_reader()
            return
        *lines, self._unfinished = (self._unfinished + chunk).split(b"\n")
        for line in lines:
            self._emit(line)
        if len(self._unfinished) >= _LINE_BYTES:
            self._emit(self._unfinished)
            self._unfinished = b""

    def _emit(self, line: bytes) -> None:
        # The runtime client joins the lines of a traceback by \r, which CloudWatch shows as lines.
        for part in line.decode("utf-8", "replace").rstrip("\r").split("\r"):
            self._log(part)

    def _close_reader(self) -> None:
        if self._open:
            self._open = False
            asyncio.get_running_loop().remove_reader(self._reader)
            os.close(self._reader)
