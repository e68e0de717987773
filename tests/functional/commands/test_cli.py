"""The `coldframe` command, as a user types it."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from coldframe.model.bundle import load_pair
from coldframe_local.paths import SAM_PYTHON
from tests.conftest import ENCODER_NAME, EXAMPLE
from tests.support.example import BASEBALL, HOCKEY, SPACE

pytestmark = pytest.mark.trains

COLDFRAME = Path(sys.executable).parent / "coldframe"


def coldframe(*arguments: str, text: str | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    """Runs the command to its end."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [COLDFRAME, *arguments],
        input=text,
        capture_output=True,
        text=True,
        env={**kept, **environ},
        timeout=60,
    )


def test_predict(bundle: Path) -> None:
    """`predict` classifies its arguments, one line of JSON for each."""
    done = coldframe("predict", "The shuttle reached orbit", "He struck out nine batters", "--head", "logreg")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["logreg"]["label"] for line in lines] == [SPACE, BASEBALL]


def test_predict_from_standard_input(bundle: Path) -> None:
    """Without arguments `predict` reads one text per line."""
    done = coldframe("predict", "--top-k", "3", text="The shuttle reached orbit\n")
    (head,) = json.loads(done.stdout).values()
    assert [len(head["top"]), head["label"]] == [3, SPACE]


def test_unknown_head(bundle: Path) -> None:
    """An unknown head is one line that lists the known ones."""
    done = coldframe("predict", "text", "--head", "no-such-head")
    assert done.returncode == 1
    known = "auto, hgb, logreg, mlp, rf, ensemble"
    assert done.stderr == f'Error: "no-such-head" is not a head of this model. Request one of: {known}.\n'


def test_predict_more_than_one_request_takes(bundle: Path) -> None:
    """Of more lines than a request may hold, each has its answer, in order; a form feed ends no line."""
    texts = ["NASA launched the shuttle into orbit", "The goalie\x0c saved every shot in the hockey game"]
    done = coldframe("predict", text="".join(f"{texts[i % 3 == 2]}\n" for i in range(2401)))
    assert done.returncode == 0, done.stderr
    labels = [json.loads(line)["auto"]["label"] for line in done.stdout.splitlines()]
    assert labels == [[SPACE, HOCKEY][i % 3 == 2] for i in range(2401)]


def test_nothing_to_predict(bundle: Path) -> None:
    """No text at all is an error, not an empty success."""
    done = coldframe("predict", text="")
    assert done.returncode == 1
    assert done.stderr == (
        "Error: There is no text. Give texts as arguments, or one per line of standard input.\n"
    )


def test_predict_waits_for_a_typist(bundle: Path) -> None:
    """On a terminal the command says what it waits for before it reads."""
    controller, terminal = os.openpty()
    try:
        with subprocess.Popen(
            [COLDFRAME, "predict"], stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            assert process.stderr.readline() == "Waiting for texts, one per line. Ctrl-D ends them.\n"
            os.write(controller, b"The shuttle reached orbit\n\x04")
            said, _ = process.communicate(timeout=60)
    finally:
        os.close(controller)
        os.close(terminal)
    assert json.loads(said)["auto"]["label"] == SPACE


def test_verify(bundle: Path) -> None:
    """`verify` names each encoder and each model, their versions and what it checked."""
    done = coldframe("verify", COLDFRAME_MODEL_DIR=str(bundle))
    assert done.returncode == 0
    encoder, model = done.stdout.splitlines()
    manifest, built = load_pair(bundle, EXAMPLE)
    assert encoder.startswith(f"{ENCODER_NAME} {built.version}: 4 files as built, 36 golden vectors, lowest")
    assert model == f"{EXAMPLE} {manifest.version}: {len(manifest.files)} files as built, on {ENCODER_NAME}"


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (["verify"], " has no model"),
        (["predict", "text"], " has no model. "),
        (["predict", "--model", "topics", "text"], " has no model. "),
        (["up"], " has no model. "),
    ],
)
def test_no_bundle(tmp_path: Path, command: list[str], found: str) -> None:
    """Without a model every command says so in one line, and what to do."""
    done = coldframe(*command, COLDFRAME_MODEL_DIR=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: {tmp_path}{found}")
    assert "`coldframe build`" in done.stderr
    assert "Traceback" not in done.stderr


def test_port_in_use(bundle: Path) -> None:
    """A port in use is one line that says which, and what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = coldframe("up", "--port", str(port))
    assert done.returncode == 1
    assert str(port) in done.stderr
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments", [["up", "--port", "high"], ["up", "--max-environments", "0"], ["nonsense"]]
)
def test_wrong_flags(arguments: list[str]) -> None:
    """A wrong flag is a usage error, not a stack trace."""
    done = coldframe(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_bad_setting_stops_init(bundle: Path) -> None:
    """A setting that cannot be used is named where it is read."""
    done = coldframe("predict", "text", COLDFRAME_THREADS="none")
    assert done.returncode == 1
    assert "COLDFRAME_THREADS='none' cannot be used. Expected `int`" in done.stderr


@pytest.mark.skipif(not SAM_PYTHON.exists(), reason="no .venv-sam: run `make .venv-sam/stamp`")
def test_check(bundle: Path) -> None:
    """`check` passes the template as it is, and refuses a parameter that cannot work, with exit status 1."""
    good = coldframe("check")
    assert (good.returncode, good.stdout.split(":")[0]) == (0, "template.yaml"), good.stdout + good.stderr
    bad = coldframe(
        "check", "--parameter", "ColdStartMode=Provisioned", "--parameter", "ReservedConcurrency=3"
    )
    assert (bad.returncode, bad.stdout.split(":")[0]) == (1, "ProvisionedOverReserved")
    assert coldframe("check", "--parameter", "Colour").returncode == 2
    unknown = coldframe("check", "--parameter", "Colour=red")
    assert unknown.returncode == 1
    assert "has no parameter Colour" in unknown.stderr
    assert "Traceback" not in unknown.stderr


def test_check_costs_the_emulator_nothing() -> None:
    """What `up` imports holds nothing of `check`, of AWS's tools, or of what waits until it is asked for."""
    code = "import sys, coldframe_local.cli, coldframe_local.emulator.front.emulator; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert "coldframe_local.emulator.front.emulator" in modules
    later = {"boto3", "prometheus_client"}
    checks = {"coldframe_local.deploy.check.check", "coldframe_local.emulator.template.syntax.cloudformation"}
    assert not {*checks, "samtranslator", *later} & modules


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--template", "nowhere.yaml"], "nowhere.yaml cannot be read: No such file or directory."),
        (["--parameter", "Nope=1"], "The template has no parameter Nope; its parameters: "),
        (["--parameter", "MemorySize=1"], "The parameter MemorySize is 1, expected at least 512"),
    ],
)
def test_template_that_cannot_be_run(arguments: list[str], said: str) -> None:
    """What is wrong with the template is one line, before anything is started."""
    done = coldframe("up", "--port", "0", *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"Error: {said}")
    assert "Traceback" not in done.stderr


def test_parameter_without_a_value() -> None:
    """`--parameter` asks for NAME=VALUE."""
    done = coldframe("up", "--parameter", "MemorySize")
    assert done.returncode == 2
    assert "found 'MemorySize', expected NAME=VALUE" in done.stderr
