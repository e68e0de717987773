"""One default model at every way in: the recorded one, and never the first by the alphabet."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pyarrow as pa
import pytest

from coldframe.columns import predict_column
from coldframe.config import load_settings
from coldframe.duckdb import register
from coldframe.errors import BundleMissing
from coldframe.model.files import DEFAULT, record_default
from coldframe.pipeline.models import load_predictor
from coldframe.pipeline.predictor import Predictor
from coldframe.spark import _predictor as spark_predictor
from coldframe.sql.estimator_tables import create_estimator
from tests.conftest import EXAMPLE, ROOT, SECOND
from tests.functional.commands.test_cli import COLDFRAME, coldframe
from tests.functional.function.test_predict_function import HTTP, to
from tests.support.example import SPACE
from tests.support.server_process import PATIENCE_S, serving

pytestmark = pytest.mark.waits

SURE = "NASA launched the shuttle into orbit around the moon"
INVOKE = """
import json, sys
from types import SimpleNamespace
from coldframe_functions.predict.app import handler
context = SimpleNamespace(aws_request_id="1", get_remaining_time_in_millis=lambda: 29_000)
print(json.dumps(handler(json.load(sys.stdin), context)))
"""
PREDICT = to(HTTP, "POST", "/v1/predict") | {"body": json.dumps({"text": SURE}), "isBase64Encoded": False}
REDSHIFT = {
    "request_id": "1", "cluster": "", "user": "", "database": "", "external_function": "topic",
    "query_id": 1, "num_records": 1, "arguments": [[SURE]],
}  # fmt: skip


def invoke(folder: Path, event: Any) -> Any:
    """What a fresh environment of the function answers."""
    done = subprocess.run(
        [sys.executable, "-c", INVOKE],
        input=json.dumps(event),
        env={"COLDFRAME_MODEL_DIR": str(folder), "COLDFRAME_LOG_LEVEL": "off", "PATH": os.environ["PATH"]},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def by_function(folder: Path) -> Any:
    body = json.loads(invoke(folder, PREDICT)["body"])
    return body["predictions"][0]["heads"]["auto"]["label"]


def by_redshift(folder: Path) -> Any:
    return json.loads(invoke(folder, REDSHIFT))["results"][0]


def by_server(folder: Path) -> Any:
    # The model beside the example has the example's golden answers, and fewer heads.
    with serving(folder, COLDFRAME_VERIFY_AT_INIT="false") as server, server.client() as client:
        body = client.post("/v1/predict", json={"text": SURE}).json()
    return body["predictions"][0]["heads"]["auto"]["label"]


def by_command(folder: Path) -> Any:
    done = coldframe("predict", SURE, COLDFRAME_MODEL_DIR=str(folder))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["auto"]["label"]


def by_duckdb(folder: Path) -> Any:
    with duckdb.connect() as connection:
        register(connection, folder)
        return connection.execute("SELECT topic(?)", [SURE]).fetchall()[0][0]


def by_estimator(folder: Path) -> Any:
    with duckdb.connect() as connection:
        create_estimator(connection, folder)
        connection.register("texts", pa.table({"id": [1], "text": [SURE]}))
        return connection.execute("SELECT topic FROM estimate('texts')").fetchall()[0][0]


def by_spark(folder: Path) -> Any:
    return label_of(spark_predictor(str(folder), None))


def by_python(folder: Path) -> Any:
    return label_of(load_predictor(load_settings({"COLDFRAME_MODEL_DIR": str(folder)})))


def label_of(predictor: Predictor) -> str | None:
    (answer,) = predict_column(predictor, [SURE], ["auto"])["auto"]
    return answer and answer.label


def by_emulator(folder: Path) -> Any:
    """`coldframe up`, by its template's own parameters."""
    environ = os.environ | {"COLDFRAME_MODEL_DIR": str(folder)}
    scenario = folder.parent / "without_stores.toml"
    scenario.write_text("stores = false\n")
    command = [str(COLDFRAME), "up", "--port", "0", "--scenario", str(scenario)]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().split()[-1]
            with httpx.Client(timeout=PATIENCE_S, trust_env=False) as client:
                answer = client.post(f"{url}/v1/predict", json={"text": SURE})
        finally:
            process.send_signal(signal.SIGINT)
    return answer.json()["predictions"][0]["heads"]["auto"]["label"]


WAYS_IN = [
    by_function, by_emulator, by_redshift, by_server, by_command,
    by_duckdb, by_estimator, by_spark, by_python,
]  # fmt: skip


@pytest.mark.parametrize("ask", WAYS_IN)
def test_the_recorded_model_answers(two_models: Path, ask: Callable[[Path], Any]) -> None:
    """With two models and no choice, the recorded one answers, though another is first by the alphabet."""
    assert sorted((EXAMPLE, SECOND))[0] == SECOND
    assert ask(two_models) == SPACE


@pytest.fixture
def recorded_second(two_models: Path, tmp_path: Path) -> Path:
    """Both models, with the other one recorded."""
    for part in (EXAMPLE, SECOND, "encoders"):
        (tmp_path / part).symlink_to(two_models / part)
    record_default(tmp_path, SECOND)
    return tmp_path


@pytest.mark.parametrize("ask", WAYS_IN)
def test_the_record_decides(recorded_second: Path, ask: Callable[[Path], Any]) -> None:
    """After `coldframe models --default`, the other model answers everywhere."""
    assert ask(recorded_second) == f"queue {SPACE}"


@pytest.mark.parametrize("caller", [by_duckdb, by_estimator, by_spark, by_python])
def test_no_record_is_an_error(recorded_second: Path, caller: Callable[[Path], Any]) -> None:
    """Without record and choice no model is guessed."""
    (recorded_second / DEFAULT).unlink()
    with pytest.raises(
        BundleMissing, match=f"2 models: {SECOND}, {EXAMPLE}.*coldframe models --default NAME"
    ):
        caller(recorded_second)


@pytest.mark.parametrize("command", [["predict", SURE], ["serve", "--port", "0"], ["up", "--port", "0"]])
def test_commands_guess_no_model(recorded_second: Path, command: list[str]) -> None:
    """A command without record and choice ends at once, and says what to do."""
    (recorded_second / DEFAULT).unlink()
    done = coldframe(*command, COLDFRAME_MODEL_DIR=str(recorded_second))
    assert done.returncode == 1
    assert f"2 models: {SECOND}, {EXAMPLE}" in done.stderr
    assert "coldframe models --default NAME" in done.stderr


def test_a_named_model_answers(two_models: Path) -> None:
    """DuckDB, its estimator and Spark take the same two words, `folder` and `model`, in this order."""
    with duckdb.connect() as connection:
        register(connection, two_models, SECOND)
        register(connection, folder=two_models, model=EXAMPLE, prefix="other_")
        row = connection.execute("SELECT topic($text), other_topic($text)", {"text": SURE}).fetchall()[0]
        create_estimator(connection, two_models, SECOND)
        connection.register("texts", pa.table({"id": [1], "text": [SURE]}))
        estimated = connection.execute("SELECT topic FROM estimate('texts')").fetchall()[0][0]
    assert (*row, estimated) == (f"queue {SPACE}", SPACE, f"queue {SPACE}")
    assert spark_predictor(str(two_models), SECOND).manifest.name == SECOND


def test_wrong_words(two_models: Path) -> None:
    """A model in the place of the folder, or an unknown model, is told apart, with what to write instead."""
    with duckdb.connect() as connection:
        with pytest.raises(
            BundleMissing, match=f"Give {two_models} as the folder, and {SECOND} as the model"
        ):
            register(connection, two_models / SECOND)
        with pytest.raises(BundleMissing, match=f"has no model 'nope'. Models: {SECOND}, {EXAMPLE}"):
            register(connection, two_models, "nope")


def test_models_command(two_models: Path, tmp_path: Path) -> None:
    """`models` marks the default, `--default` records another, `--remove` says when the default is gone."""
    folder = tmp_path / "models"
    shutil.copytree(two_models, folder)
    shutil.copytree(folder / EXAMPLE, folder / "third")
    environ = {"COLDFRAME_MODEL_DIR": str(folder)}
    assert coldframe("models", "--default", SECOND, **environ).stdout == f"{SECOND} is the default model.\n"
    shutil.rmtree(folder / "third")
    listed = coldframe("models", **environ).stdout.splitlines()
    assert [line.split()[0] for line in listed if line.endswith("(default)")] == [SECOND]
    unknown = coldframe("models", "--default", "nope", **environ)
    assert (unknown.returncode, "has no model 'nope'" in unknown.stderr) == (1, True)
    both = coldframe("models", "--default", SECOND, "--remove", SECOND, **environ)
    assert both.returncode == 2
    shutil.copytree(folder / EXAMPLE, folder / "third")
    removed = coldframe("models", "--remove", SECOND, "--yes", **environ).stdout
    assert "It was the default model. Choose another: coldframe models --default NAME" in removed
