"""One cold sample: a fresh interpreter that loads the function, answers one event and reports what it did."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, cast

from coldframe.errors import ColdframeError
from coldframe_local.paths import ROOT

# Until its answer, the child runs nothing that the function does not need; the report follows the
# answer. All processes of a machine share one monotonic clock.
_CHILD = """\
import time
begun_ns = time.monotonic_ns()
{load}
loaded_ns = time.monotonic_ns()
{ask}
answered_ns = time.monotonic_ns()
{done}
import json, os, sys
try:
    lines = open("/proc/self/io").read().splitlines()
    read_bytes = int(dict(line.split(": ") for line in lines)["read_bytes"])
except OSError:
    read_bytes = None
files = {{m.__file__ for m in list(sys.modules.values()) if getattr(m, "__file__", None)}}
files |= {{m.__cached__ for m in list(sys.modules.values()) if getattr(m, "__cached__", None)}}
if os.path.exists("/proc/self/maps"):
    files |= {{line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if "/" in line}}
report = dict(begun_ns=begun_ns, loaded_ns=loaded_ns, answered_ns=answered_ns, read_bytes=read_bytes)
report["answer"] = globals().get("answer")
report["files"] = sorted(files) if os.environ.get("BENCH_FILES") else []
report["second"], report["second_ms"] = globals().get("second", {{}}), globals().get("second_ms", 0.0)
report["stages_ms"], report["calls"] = globals().get("stages_ms", {{}}), globals().get("calls", {{}})
print(json.dumps(report), flush=True)
"""

_ASK = """
class Context:
    aws_request_id = "bench"
    get_remaining_time_in_millis = staticmethod(lambda: 29000)
sys_stderr = __import__("sys").stderr
answer = {handler}({event!r}, Context)
"""
# Between two answers the process is stopped, as Lambda stops it, with all that its threads left undone.
_ASK_AGAIN = """
import sys
sys.stdout.write({answered!r}); sys.stdout.flush(); sys.stdin.readline()
again_ns = time.monotonic_ns()
second = {handler}({event!r}, Context)
second_ms = (time.monotonic_ns() - again_ns) / 1e6
"""
_ANSWERED_MARK = "== answered ==\n"
_FROZEN_S = 0.1
_IMPORT_TIME = re.compile(r"^import time:\s+(\d+) \|\s+(\d+) \|\s+(\S+)$")
_BEGIN_MARK = "== begin =="
_DONE_MARK = "== done =="
_FUNCTION_PACKAGE = "functions"


class SampleFailed(ColdframeError):
    """A fresh process did not answer as it should."""


@dataclass(frozen=True)
class Program:
    """Program of a fresh interpreter. load: the init phase. handler: takes the event; empty: no event."""

    load: str
    handler: str = ""

    def source(self, event: Mapping[str, Any] | None, traced: bool) -> str:
        """Source text for `python -c`; `event` is a literal in it, so that none is read or parsed."""
        ask = _ASK.format(handler=self.handler, event=event) if self.handler else ""
        done = f'sys_stderr.write("{_DONE_MARK}\\n")' if traced and self.handler else ""
        child = _CHILD.format(load=self.load, ask=ask, done=done)
        if not traced:
            return child
        tracer = (ROOT / "bench" / "coldframe_bench" / "targets" / "traced.py").read_text()
        return f'{tracer}\nsys.stderr.write("{_BEGIN_MARK}\\n")\n{child}'

    def source_of_two(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
        """Source text of a process that answers two events, and waits between them for a line of input."""
        ask = _ASK.format(handler=self.handler, event=first)
        again = _ASK_AGAIN.format(answered=_ANSWERED_MARK, handler=self.handler, event=second)
        return _CHILD.format(load=self.load, ask=ask, done=again)


@dataclass(frozen=True)
class Taken:
    """Report of one process. Milliseconds from the call that spawned it to its answer.

    second, second_ms: its answer to a second event, and the time of this one alone.
    """

    total_ms: float
    stages_ms: dict[str, float]
    imports_ms: dict[str, float]
    calls: dict[str, int]
    read_bytes: int | None
    answer: Mapping[str, Any]
    files: list[str] = field(default_factory=list)
    second: Mapping[str, Any] = field(default_factory=dict)
    second_ms: float = 0.0


def take(
    source: str, traced: bool, environ: Mapping[str, str], root: Path, python: Path = Path(sys.executable)
) -> Taken:
    """Runs `source` in a fresh interpreter in `root`, up to its report; it need not end by itself.

    Between two answers it is stopped, as Lambda stops it. Raises SampleFailed with the end of what it wrote
    where it does not report.
    """
    command = [str(python), *(["-X", "importtime"] if traced else []), "-c", source]
    pipe = subprocess.PIPE
    with tempfile.TemporaryFile() as errors:
        called_ns = time.monotonic_ns()
        process = subprocess.Popen(
            command, cwd=root, env=dict(environ), stdin=pipe, stdout=pipe, stderr=errors
        )
        spawned_ns = time.monotonic_ns()
        with process:
            requests, reports = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
            line = reports.readline()
            if line == _ANSWERED_MARK.encode():
                process.send_signal(signal.SIGSTOP)
                time.sleep(_FROZEN_S)
                process.send_signal(signal.SIGCONT)
                requests.write(b"\n")
                requests.flush()
                line = reports.readline()
            process.kill()  # threads of it may still be loading what this answer did not need
        errors.seek(0)
        written = errors.read().decode(errors="replace")
    if not line.startswith(b"{"):
        raise SampleFailed(f"A fresh process did not answer:\n{line.decode()}{written[-2000:]}")
    report = json.loads(line)
    return _taken(report, called_ns, spawned_ns, written if traced else "")


def invoke(events: Iterable[object], environ: Mapping[str, str]) -> tuple[list[float], float]:
    """Milliseconds of each invocation in one fresh environment, and its peak of memory in MB."""
    *times_ms, peak_mb = run_program(
        ["-m", "coldframe_bench.loader.invocations"], events, environ, ROOT
    ).splitlines()
    return [float(ms) for ms in times_ms], float(peak_mb)


def run_program(
    arguments: list[str], events: Iterable[object], environ: Mapping[str, str], root: Path
) -> str:
    """Output of a fresh interpreter in `root`, which gets one JSON event per line.

    Raises SampleFailed with the end of what it wrote where it fails.
    """
    lines = "".join(json.dumps(event) + "\n" for event in events)
    command = [sys.executable, *arguments]
    done = subprocess.run(command, input=lines, cwd=root, env=dict(environ), capture_output=True, text=True)
    if done.returncode:
        raise SampleFailed(f"A fresh process ended with an error:\n{done.stderr[-1000:]}")
    return done.stdout


def _taken(report: dict[str, Any], called_ns: int, spawned_ns: int, import_log: str) -> Taken:
    traced = report["stages_ms"] if import_log else {}
    marks = [called_ns, spawned_ns, *(report[name] for name in ("begun_ns", "loaded_ns", "answered_ns"))]
    spawn, interpreter, init, invoke = ((after - before) / 1e6 for before, after in pairwise(marks))
    stages = {"spawn": spawn, "interpreter": interpreter, "init": init, "invoke": invoke}
    imports = _own_times(import_log.partition(_BEGIN_MARK)[2].partition(_DONE_MARK)[0])
    # Loading the model is in its module's body, and has stages of its own.
    imports.pop(_FUNCTION_PACKAGE, None)
    if import_log:
        known = sum(traced.values()) + sum(imports.values())
        stages |= {"imports": sum(imports.values()), **traced, "other": max(0.0, init + invoke - known)}
    return Taken(
        total_ms=(marks[-1] - called_ns) / 1e6,
        stages_ms=stages,
        imports_ms=imports,
        calls=report["calls"],
        read_bytes=report["read_bytes"],
        answer=report["answer"] or {},
        files=[name for name in report["files"] if os.path.isfile(name)],  # noqa: PTH113 (some are "[vdso]")
        second=report["second"],
        second_ms=report["second_ms"],
    )


def _own_times(log: str) -> dict[str, float]:
    """Own milliseconds of imported modules, added up by top-level package."""
    packages: dict[str, float] = {}
    for match in filter(None, map(_IMPORT_TIME.match, log.splitlines())):
        package = match[3].partition(".")[0]
        packages[package] = packages.get(package, 0.0) + int(match[1]) / 1e3
    return packages
