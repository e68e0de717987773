"""Predictions on real Spark: a driver, two executors in processes of their own, Arrow between."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coldframe.columns import predict_column
from coldframe.pipeline.predictor import Predictor
from coldframe_bench.data.texts import sentences
from coldframe_local.paths import ROOT, SPARK_PYTHON, python_path

pytestmark = pytest.mark.containers

TEXTS = [None if row % 40 == 7 else text for row, text in enumerate((sentences() * 4)[:400])]


@pytest.fixture(scope="module")
def folder(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table that the job reads, and where it writes."""
    found = tmp_path_factory.mktemp("spark")
    pq.write_table(pa.table({"id": range(len(TEXTS)), "body": TEXTS}), found / "in.parquet")
    return found


@pytest.fixture(scope="module")
def told(folder: Path, bundle: Path) -> dict[str, Any]:
    """What the job says at its end; without Java or Spark, a test is skipped."""
    if shutil.which("java") is None:
        pytest.skip("NO JAVA: NOTHING RAN ON SPARK. `apt install default-jre-headless`")
    if not SPARK_PYTHON.exists():
        pytest.skip(f"NO {SPARK_PYTHON}: NOTHING RAN ON SPARK. `make .venv-spark/stamp` sets it up")
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
    environ = kept | {
        "PYTHONPATH": python_path(),
        "PYSPARK_PYTHON": str(SPARK_PYTHON),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [str(SPARK_PYTHON), "-m", "tests.integration.spark_job", str(folder), str(bundle)]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-5000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_answers_are_those_of_the_predictor(told: object, folder: Path, predictor: Predictor) -> None:
    """Every row of every partition has the answers of `Predictor.predict`, to the bit; null has null."""
    rows = sorted(pq.read_table(folder / "out.parquet").to_pylist(), key=lambda row: row["id"])
    assert [row["id"] for row in rows] == list(range(len(TEXTS)))
    assert [row["body"] for row in rows] == TEXTS
    expected = predict_column(predictor, TEXTS, ["auto", "logreg"])
    for head in ("auto", "logreg"):
        for name in ("label", "probability", "out_of_distribution"):
            answers = [None if answer is None else getattr(answer, name) for answer in expected[head]]
            assert [row[f"{name}_{head}"] for row in rows] == answers
    assert {row["by_auto"] for row in rows} == {"estimator", "ensemble", None}


def test_the_model_is_loaded_once_per_process(told: dict[str, Any]) -> None:
    """Four partitions and three jobs later, each process of each executor has the one predictor it loaded."""
    processes = [process for process, _ in told["first"]]
    assert 1 <= len(processes) == len(set(processes)) <= 2
    assert {tuple(pair) for pair in told["first"]} <= {tuple(pair) for pair in told["second"]}
    assert len(told["second"]) <= 2
    assert told["rows"] == sum(text is not None for text in TEXTS)


def test_refused(told: dict[str, Any]) -> None:
    """A column that is missing, no string or taken is refused by the driver, before anything runs."""
    missing, number, taken = told["refused"]
    assert "'none' is missing, expected a string" in missing
    assert "'id' is bigint, expected a string" in number
    assert "has a column 'taken_label' already" in taken
