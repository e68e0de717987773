"""What all commands have in common: JSON, early errors, bars for people only, and a clean end."""

import fcntl
import json
import os
import pty
import signal
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from coldframe_local.cli import main
from tests.conftest import ROOT
from tests.functional.commands.test_cli import COLDFRAME, coldframe

pytestmark = pytest.mark.waits

# Commands whose results are no numbers of their own, and why.
WITHOUT_JSON = {
    "up": "serves",
    "serve": "serves",
    "predict": "prints a line of JSON for each text, or writes a table",
    "build": "makes files",
    "new": "makes files",
    "encoder pack": "makes a file",
    "encoder install": "makes files",
    "offline start": "reports a run of Step Functions",
    "sql": "prints statements",
    "feedback texts": "prints a line of JSON for each text",
    "bench": "writes raw files of JSON lines",
}


def commands(group: click.Group, parents: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command that is not a group, by its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*parents, name))
        else:
            yield " ".join((*parents, name)), command


def test_every_command_with_results_has_json() -> None:
    """A command whose results a program may want has --json; the table above says why others have not."""
    leaves = dict(commands(main))
    assert "models" in leaves
    lacking = [
        name
        for name, command in leaves.items()
        if not any("--json" in option.opts for option in command.params)
    ]
    unexplained = [name for name in lacking if not {name, name.split()[0]} & WITHOUT_JSON.keys()]
    assert unexplained == []


@pytest.mark.parametrize(
    ("command", "key"),
    [
        (["verify"], "models"),
        (["homes"], "lambda_usd"),
        (["simulate", "--rps", "0.01", "--hours", "1"], "cold"),
        (["plan", "--rps", "0.01", "--hours", "1", "--memory-mb", "1769"], "levers"),
        (["bench", "warm", "--made", "constant", "--slot-s", "3600", "--usd"], "on_lambda"),
    ],
)
def test_json_alone_is_printed(bundle: Path, command: list[str], key: str) -> None:
    """With --json, standard output is one JSON value and nothing else; a log gets no bar."""
    done = coldframe(*command, "--json", COLDFRAME_MODEL_DIR=str(bundle))
    assert done.returncode == 0, done.stderr
    assert key in json.loads(done.stdout)
    assert "\r" not in done.stderr


def test_json_of_models(two_models: Path) -> None:
    """`models --json` lists each model with its version and heads, and says which one is the default."""
    found = json.loads(coldframe("models", "--json", COLDFRAME_MODEL_DIR=str(two_models)).stdout)
    assert [(one["name"], one["default"]) for one in found] == [("queues", False), ("topics", True)]
    assert found[0]["heads"] == ["logreg", "mlp"]


WITHOUT_PLOTS = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "vl_convert" else found(name, package)
from coldframe_local.planner import planner
planner.Planner.plan = None  # nothing may be simulated
from coldframe_local.cli import main
main(sys.argv[1:])
"""


def test_missing_part_is_said_before_the_work(tmp_path: Path) -> None:
    """`plan --html` without its plotting library fails before anything is simulated."""
    command = ["plan", "--rps", "1", "--hours", "1", "--html", str(tmp_path / "plan.html")]
    done = subprocess.run([sys.executable, "-c", WITHOUT_PLOTS, *command], capture_output=True, text=True)
    assert (done.returncode, "vl_convert is not installed" in done.stderr) == (1, True)


def test_folder_that_is_not_there_is_said_before_the_work(tmp_path: Path) -> None:
    """A page that could not be written at the end is refused at the start."""
    out = tmp_path / "missing" / "plan.html"
    done = coldframe("plan", "--rps", "100", "--shape", "diurnal", "--html", str(out))
    assert done.returncode == 2
    assert f"{tmp_path}/missing is not a folder to write to" in " ".join(done.stderr.split())


def on_terminal(*arguments: str, until: bytes, columns: int) -> tuple[bytes, int]:
    """What a command writes to a terminal until some bytes come; then Ctrl-C, and its exit code."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([COLDFRAME, *arguments], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    written = b""
    try:
        while until not in written:
            written += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        written += rest_of(ours)
        return written, process.wait()
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def rest_of(terminal: int) -> bytes:
    """What comes until the other side is closed."""
    written = b""
    while True:
        try:
            more = os.read(terminal, 4096)
        except OSError:  # Linux: the last process has left the terminal
            return written
        if not more:
            return written
        written += more


@pytest.mark.parametrize("columns", [0, 80])
def test_progress_on_a_terminal_and_a_clean_end(columns: int) -> None:
    """A plan shows how far it is, on a terminal of unknown width too, and Ctrl-C leaves no traceback."""
    arguments = ("plan", "--rps", "20", "--shape", "diurnal")
    written, code = on_terminal(*arguments, until=b"simulating: ", columns=columns)
    assert code == 1
    assert b"Aborted!" in written
    assert b"Traceback" not in written


def test_a_taken_port_is_said_before_the_build() -> None:
    """`make run` tries its port first, and names the words to type."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        made = subprocess.run(
            ["make", "run", f"PORT={port}", f"PYTHON={sys.executable}", "BUILT=never-built"],
            cwd=ROOT, env=os.environ | {"MAKEFLAGS": ""}, capture_output=True, text=True,
        )  # fmt: skip
    assert made.returncode == 2
    assert f"Port {port} is in use" in made.stderr
    assert f"make run PORT={port + 1}" in made.stderr
    assert "never-built" not in made.stdout + made.stderr


def test_first_screen_of_up_is_short(bundle: Path) -> None:
    """What is ignored of the template is one line; `--verbose` has them all."""
    first, every = (lines_of_up(bundle, *options) for options in ((), ("--verbose",)))
    (counted,) = [line for line in first if line.startswith("Ignored: ")]
    assert "coldframe up --verbose" in counted
    assert len([line for line in every if line.startswith("Ignored: ")]) > 2


def lines_of_up(bundle: Path, *options: str) -> list[str]:
    """The first screen of `up`, up to its last line."""
    environ: dict[str, Any] = os.environ | {"COLDFRAME_MODEL_DIR": str(bundle)}
    process = subprocess.Popen(
        [COLDFRAME, "up", "--port", "0", *options],
        env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    lines: list[str] = []
    with process:
        for line in process.stdout:
            lines.append(line.rstrip())
            if line.startswith("This machine's limit"):
                process.send_signal(signal.SIGINT)
    return lines
