"""A process of AWS's runtime client: how it is started, what it is given, how it is stopped."""

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
from collections.abc import Mapping

from coldframe.capacity.limits import FILES
from coldframe_local.emulator.lambda_service.settings import FunctionSettings, LogFormat

# Without these an interpreter may not find its programs, native libraries or a writable folder.
_PASSED_THROUGH = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")
_PROJECT_PREFIX = "COLDFRAME_"
_PROBE_TIMEOUT_S = 10
_FILES_TO_START = 8  # pipes to the child during its start, and pipes that it inherits


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
    initialization_type: "on-demand", "provisioned-concurrency" or "snap-start".
    Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html, read 2026-11. With
    SnapStart there are no names of the log: .../dg/snapstart-monitoring.html, read 2026-11-22.
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
    if initialization_type == "snap-start":
        del reserved["AWS_LAMBDA_LOG_GROUP_NAME"], reserved["AWS_LAMBDA_LOG_STREAM_NAME"]
    return defaults | dict(function.environ) | reserved | _logging_environ(function)


def _logging_environ(function: FunctionSettings) -> dict[str, str]:
    """Variables that make AWS's runtime client write JSON, and nothing below the level."""
    logging = function.logging
    if logging.log_format is LogFormat.TEXT:
        return {"AWS_LAMBDA_LOG_FORMAT": logging.log_format}
    return {
        "AWS_LAMBDA_LOG_FORMAT": logging.log_format,
        "AWS_LAMBDA_LOG_LEVEL": logging.application_level,
    }


async def spawn_runtime(function: FunctionSettings, environ: Mapping[str, str], output: int) -> Process:
    """Starts AWS's runtime client on the function's handler, in a process group of its own.

    output: file descriptor for stdout and stderr together, so that their order is kept.
    A group of its own keeps a terminal's Ctrl-C away from the function (the emulator
    stops it in its own order) and lets `kill_group` reach whatever the function started.
    Raises OSError when the process cannot be started.
    """
    _check_free_files()
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


def _check_free_files() -> None:
    """Raises OSError (EMFILE) when starting a process would run out of files half-way.

    uvloop does not clean up then: it writes "UVProcessTransport is open in __dealloc__" with a stack trace.
    """
    spare: list[int] = []
    try:
        for _ in range(_FILES_TO_START):
            spare.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    finally:
        for file in spare:
            os.close(file)


def raise_file_limit() -> None:
    """As many open files as this process may have: an environment takes seven of the emulator's."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # macOS calls its hard limit infinite and then refuses it.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def limit_files(pid: int) -> None:
    """Lambda's 1,024 open files for an environment's process, where the system lets us (Linux).

    Source: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html, read 2026-11.
    """
    if sys.platform == "linux":
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (FILES.value, FILES.value))


def kill_group(pid: int) -> None:
    """SIGKILL to a process and all that it started: Lambda gives a runtime no other goodbye."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def can_freeze() -> bool:
    """Whether environments may be stopped: only where none can outlive the emulator as a stopped process."""
    return bool(die_with_parent())


def freeze_group(pid: int, *, frozen: bool) -> None:
    """Stops a process and all that it started, or lets them go on."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGSTOP if frozen else signal.SIGCONT)


def exit_reason(returncode: int) -> str:
    """How a process ended: its status, or the name of the signal."""
    if returncode >= 0:
        return f"exit status {returncode}"
    return f"signal: {signal.strsignal(-returncode) or -returncode}".lower()


def exit_message(returncode: int) -> str:
    """The end of a runtime client, in the words of Lambda's log.

    A process that leaves with status 0 gives no reason.
    Source: https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html, read 2026-11-21.
    """
    if returncode == 0:
        return "Error: Runtime exited without providing a reason"
    return f"Error: Runtime exited with error: {exit_reason(returncode)}"


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
