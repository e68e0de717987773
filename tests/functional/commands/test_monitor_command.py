"""`coldframe monitor`: reads log lines, prints a report, and fails where texts have drifted."""

import json
import random
import shutil
from pathlib import Path

import boto3
import pytest
from click.testing import CliRunner, Result
from moto import mock_aws

from coldframe.feedback.ids import Answer as Given
from coldframe.feedback.table import FeedbackTable
from coldframe.model.bundle import load_manifest
from coldframe.model.files import model_folder
from coldframe.monitoring.recorder import Answer, count_answer
from coldframe.monitoring.reference import make_reference, write_reference
from coldframe.monitoring.sketch import Sketch, empty_counts
from coldframe_local.cli import main
from coldframe_training.publishing.assemble import publish_reference
from tests.conftest import EXAMPLE

LABELS = ["a", "b", "c"]


def answers(dice: random.Random, number: int, probability: float) -> list[Answer]:
    """Answers that differ in label, length and score."""
    return [
        Answer(dice.randrange(3), probability, 20 + dice.randrange(50), 0, dice.random())
        for _ in range(number)
    ]


@pytest.fixture
def models(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the example, whose reference has right answers alone."""
    folder = model_folder(tmp_path / "models", EXAMPLE)
    shutil.copytree(bundle / EXAMPLE, folder)
    rows = answers(random.Random(1), 500, 0.9)
    reference = make_reference("auto", LABELS, "sha256:encoder", 384, [(row, row.label) for row in rows])
    write_reference(reference, tmp_path)
    publish_reference(tmp_path, folder, load_manifest(tmp_path / "models", EXAMPLE).version)
    monkeypatch.setenv("COLDFRAME_MODEL_DIR", str(tmp_path / "models"))
    return tmp_path / "models"


def log_of(models: Path, probability: float) -> str:
    """Log lines of ten hours."""
    version, dice, lines = load_manifest(models, EXAMPLE).version, random.Random(2), ["START RequestId: 1"]
    for hour in range(10):
        counts = empty_counts(3)
        for answer in answers(dice, 60, probability):
            count_answer(counts, answer, 3, None)
        sketch = Sketch(version, "auto", "e", hour, 3600.0 * hour, 3600.0 * hour + 60, counts)
        lines.append(json.dumps({"event": "sketch", "sketch": sketch.as_json()}))
    return "\n".join(lines)


def run(*options: str, lines: str = "") -> Result:
    return CliRunner().invoke(main, ["monitor", *options], input=lines)


def test_quiet_and_shifted_texts(models: Path, tmp_path: Path) -> None:
    """Texts like the training's end with status 0, others with status 1 and the drifted quantity."""
    quiet = run(lines=log_of(models, 0.9))
    assert (quiet.exit_code, "no drift" in quiet.stdout) == (0, True)
    (tmp_path / "log").write_text(log_of(models, 0.4))
    shifted = run(str(tmp_path / "log"))
    assert (shifted.exit_code, "DRIFT" in shifted.stdout) == (1, True)
    assert "confidence since 1970-01-01" in shifted.stdout
    assert run(str(tmp_path / "log"), "--baseline", str(tmp_path / "log")).exit_code == 0


def test_figures_for_programs(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --json, standard output is the reports; with --emf, one line of metrics for each."""
    monkeypatch.setenv("COLDFRAME_METRICS_NAMESPACE", "Coldframe/mine")
    (report,) = json.loads(run("--json", lines=log_of(models, 0.9)).stdout)
    assert (report["texts"], report["drifted"], report["expected_accuracy"]) == (600, False, 1.0)
    (line,) = run("--emf", lines=log_of(models, 0.9)).stdout.splitlines()
    metrics = json.loads(line)
    assert metrics["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Coldframe/mine"
    assert (metrics["monitored_texts"], metrics["Model"]) == (600, report["model"])


def test_labels(models: Path, tmp_path: Path) -> None:
    """Random labels bound the accuracy, complaints are counted apart, and a faulty line is named."""
    version, path = load_manifest(models, EXAMPLE).version, tmp_path / "labels"
    label = {"model": version, "head": "auto", "probability": 0.9, "right": True}
    drawn = ["random"] * 80 + ["complaint"]
    path.write_text("\n".join(json.dumps(label | {"drawn": kind}) for kind in drawn))
    printed = run("--labels", str(path), lines=log_of(models, 0.9)).stdout
    assert "by 80 random labels" in printed
    assert "complaints: 1" in printed
    path.write_text("{}")
    failed = run("--labels", str(path), lines=log_of(models, 0.9))
    assert failed.exit_code == 1
    assert "Line 1 is not a label" in failed.stderr


def test_page(models: Path, tmp_path: Path) -> None:
    """The page has each figure with its basis, names what changed, escapes values, and loads nothing."""
    version, labels, page = (
        load_manifest(models, EXAMPLE).version,
        tmp_path / "labels",
        tmp_path / "page.html",
    )
    label = {"model": version, "head": "auto", "probability": 0.9, "right": True}
    drawn = ["random"] * 80 + ["complaint"]
    labels.write_text("\n".join(json.dumps(label | {"drawn": kind}) for kind in drawn))
    log = log_of(models, 0.4) + "\n" + log_of(models, 0.4).replace(version, "<b>")
    result = run("--labels", str(labels), "--html", str(page), lines=log)
    assert (result.exit_code, "DRIFT" in result.stdout) == (1, True)
    text = page.read_text()
    for part in (
        "no labels",
        "80 random labels",
        "validation rows",
        "no other figure rests on them",
        "changed",
    ):
        assert part in text
    assert "1970-01-01" in text
    assert "<b>" not in text
    assert "<script" not in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    empty = run("--html", str(page), lines="")
    assert (empty.exit_code, "No line has a sketch" in page.read_text()) == (0, True)


def test_no_traffic(models: Path) -> None:
    """Without sketches the command says so, and succeeds; broken sketches are counted on standard error."""
    none = run(lines="START\n" + json.dumps({"sketch": 1}))
    assert none.exit_code == 0
    assert "No line has a sketch" in none.stdout
    assert "1 sketches cannot be read" in none.stderr


def test_labels_of_the_table_count(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels of feedback bound the accuracy; a table that is missing is an error that says what to do."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    version = load_manifest(models, EXAMPLE).version
    with mock_aws():
        client = boto3.client("dynamodb")
        missing = run("--feedback", "labels", lines=log_of(models, 0.9))
        assert missing.exit_code == 1
        assert "Check the name" in missing.output
        names = (("day", "HASH"), ("nonce", "RANGE"))
        client.create_table(
            TableName="labels",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in names],
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in names],
        )
        table = FeedbackTable("labels", lambda: client, lambda: 0.0)
        for number in range(40):
            given = Given(version, "auto", "a", 0.9, 100 + number, True, number.to_bytes(16, "big"))
            assert table.add(given, "a", 1e10)
        printed = run("--feedback", "labels", lines=log_of(models, 0.9)).output
    assert "accuracy by 40 random labels" in printed
