"""`coldframe train`, as a user types it: a table becomes a model that is served."""

import csv
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from coldframe.api.api import Api
from coldframe.config import Settings
from coldframe.experiments.document import Experiment
from coldframe.model.bundle import Manifest, load_encoder_manifest, load_manifest
from coldframe.model.verify import verify_bundle
from coldframe.monitoring.reference import load_reference
from coldframe.pipeline.models import load_models, load_predictor
from coldframe.pipeline.predictor import Predictor
from coldframe.timing import StartMark
from coldframe.vectors import ranked, to_floats
from coldframe_local.paths import BUILD_PYTHON, MODELS, ROOT
from tests.conftest import EXAMPLE, post
from tests.support.made_encoders import reuse

pytestmark = [
    pytest.mark.trains,
    pytest.mark.skipif(
        not BUILD_PYTHON.exists(), reason=f"no {BUILD_PYTHON}: nothing was trained. `make build` sets it up."
    ),
]

COLDFRAME = Path(sys.executable).parent / "coldframe"
TICKETS = ROOT / "layers" / "model" / "examples" / "tickets"
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiou"]
OTHERS = ["the", "of", "with", "then", "over", "near", "old", "new", "good", "please", "could", "you", "not"]
Row = tuple[str, str]


def made_up(classes: int, each: int) -> list[Row]:
    """Texts, with line ends and commas, and labels: each label has words of its own among words of all."""
    dice = random.Random(classes)
    rows = []
    for number in range(classes):
        own = ["".join(dice.choices(SYLLABLES, k=3)) for _ in range(5)]
        for _ in range(each):
            words = [dice.choice(own if dice.random() < 0.4 else OTHERS) for _ in range(16)]
            rows.append((f'{" ".join(words[:5])},\n"{" ".join(words[5:])}"', f"queue {number:03}"))
    dice.shuffle(rows)
    return rows


def write_csv(path: Path, rows: Sequence[Row]) -> Path:
    """A table with the columns `body` and `queue`."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("body", "queue"), *rows])
    return path


def tickets_of(name: str) -> list[Row]:
    """A table of the tickets example."""
    with (TICKETS / name).open(newline="", encoding="utf-8") as file:
        return [(row["body"], row["queue"]) for row in csv.DictReader(file)]


def command(table: Path, models: Path, *options: str) -> list[str | Path]:
    """`coldframe train` with the columns of `write_csv`."""
    given = ["--text", "body", "--label", "queue", "--name", "tickets", "--models", str(models)]
    return [COLDFRAME, "train", table, *given, *options]


def train(table: Path, models: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Trains to the end. One thread each: on a busy machine several wait for each other."""
    return subprocess.run(
        command(table, models, *options),
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )


def trained(table: Path, models: Path, *options: str) -> Path:
    """The folder of a model."""
    done = train(table, models, *options)
    assert done.returncode == 0, done.stderr
    return models / "tickets"


def predictor_of(model: Path) -> Predictor:
    """What serves a model."""
    return load_predictor(Settings(model_dir=model.parent, models=model.name))


def manifest_of(model: Path) -> Manifest:
    """What is known of a model."""
    return load_manifest(model.parent, model.name)


def accuracy(model: Path, rows: Sequence[Row], head: str) -> float:
    """Share of rows whose label the served model gives."""
    predictor = predictor_of(model)
    found = predictor.predict([text for text, _ in rows], [head], use_cache=False).answers[head]
    labels = [predictor.manifest.labels[ranked(to_floats(row)[:-1])[0]] for row in found]
    return sum(label == row[1] for label, row in zip(labels, rows, strict=True)) / len(rows)


@pytest.fixture(scope="module")
def example(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the tickets example, with all heads."""

    def make(models: Path) -> None:
        trained(TICKETS / "tickets.csv", models, "--group=customer")

    return reuse("tickets", make, tmp_path_factory.mktemp("example") / "models", bundle, TICKETS) / "tickets"


@pytest.mark.parametrize(
    ("head", "least"),
    [("auto", 0.8), ("logreg", 0.6), ("rf", 0.7), ("hgb", 0.6), ("mlp", 0.75), ("ensemble", 0.8)],
)
def test_labels_of_new_texts(example: Path, head: str, least: float) -> None:
    """The model of a table is served, and each head gives tickets of a later month their queue."""
    assert accuracy(example, tickets_of("tickets-test.csv"), head) > least


def test_name_and_labels(example: Path) -> None:
    """The manifest has the name that was asked for, and the labels of the table in order."""
    manifest = manifest_of(example)
    assert manifest.labels == sorted({label for _, label in tickets_of("tickets.csv")})
    assert manifest.name == "tickets"


def test_model_is_verified(bundle: Path, example: Path) -> None:
    """A model passes `verify`, with the built encoder and its golden vectors."""
    [encoder], [model] = verify_bundle(example.parent)
    assert (encoder.golden, model.name) == (36, "tickets")
    assert load_encoder_manifest(example.parent, encoder.name) == load_encoder_manifest(bundle, encoder.name)


def test_figures_of_the_manifest(example: Path) -> None:
    """The manifest has the accuracy of each head and of `auto` on rows that were held out."""
    manifest = manifest_of(example)
    figures = [head.accuracy["text"] for head in manifest.named_heads.values()]
    assert len(figures) == 5
    assert all(0 <= figure <= 1 for figure in [*figures, manifest.estimator.auto_accuracy["text"]])
    assert manifest.estimator.threshold >= 0.6
    assert manifest.estimator.min_tokens == 3


def test_report(example: Path) -> None:
    """The report has the manifest's accuracy, an interval around it, every held-out row, and a baseline."""
    report = json.loads((example / "report.json").read_bytes())
    rows = tickets_of("tickets.csv")
    found = report["summary"]
    accuracy = manifest_of(example).estimator.auto_accuracy["text"]
    assert found["accuracy"]["value"] == pytest.approx(accuracy, abs=1e-4)
    assert found["accuracy"]["low"] <= accuracy <= found["accuracy"]["high"]
    assert sum(count for *_, count in report["confusion"]) == found["rows"]
    assert found["rows"] == pytest.approx(0.2 * len(rows), abs=9)
    assert found["baseline_accuracy"] > 0.5
    assert all(rows[mistake["row"] - 1][1] == mistake["label"] for mistake in report["mistakes"])
    assert "tickets" in (example / "report.html").read_text()


def test_probabilities_of_a_small_table(example: Path) -> None:
    """Answers are about as often right as they say: a perfect model would show 8 points on so few rows."""
    report = json.loads((example / "report.json").read_bytes())
    assert report["reliability"]["expected_calibration_error"] < 0.1
    assert report["reliability_before"]["expected_calibration_error"] > 0.2


def against(model: Path, table: Path, models: Path) -> "subprocess.CompletedProcess[str]":
    """Trains where the new model must not be worse than another one on tickets that neither knows."""
    test = f"--test={TICKETS / 'tickets-test.csv'}"
    return train(table, models, test, "--heads=logreg", f"--compare={model}", "--must-beat")


def test_retrained_model(example: Path, tmp_path: Path) -> None:
    """A model of more tickets is better than the first on later ones, which is said, and takes its place."""
    models = tmp_path / "models"
    older = Path(shutil.copytree(example, models / "tickets"))
    version = manifest_of(older).version
    more = write_csv(tmp_path / "more.csv", tickets_of("tickets.csv") + tickets_of("tickets-2.csv"))
    done = against(older, more, models)
    assert done.returncode == 0, done.stderr
    assert f"on the same {len(tickets_of('tickets-test.csv'))} rows" in done.stdout
    assert "tickets is better than tickets" in done.stdout
    assert manifest_of(older).version != version


def test_feedback_beside_the_table(example: Path, tmp_path: Path) -> None:
    """Complaints are trained on: both models answer the rows that they would answer without feedback."""
    models = tmp_path / "models"
    shutil.copytree(example.parent, models)
    complaints = [
        {"text": f"{text} again", "label": label, "model": "tickets", "drawn": "complaint"}
        for text, label in tickets_of("tickets-2.csv")[:40]
    ]
    rows = tmp_path / "feedback.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in [*complaints, {"text": "new", "label": "z"}]))
    table = write_csv(tmp_path / "t.csv", tickets_of("tickets.csv"))
    options = ["--name", "second", "--compare", "tickets", "--heads", "logreg", "--with-feedback", str(rows)]
    options.append(f"--test={TICKETS / 'tickets-test.csv'}")
    done = train(table, models, *options)
    assert done.returncode == 0, done.stderr
    assert "0 random rows, which join the table; 40 complaints, which are trained on only" in done.stdout
    assert "with a label that the table does not have: 1 row (41)" in done.stdout
    shadow = models / "second" / "report.shadow.json"
    assert f"coldframe experiment start {shadow}" in done.stdout
    assert msgspec.json.decode(shadow.read_bytes(), type=Experiment).arms[1].model == "second"
    new = json.loads((models / "second" / "report.json").read_text())
    assert new["summary"]["rows"] == len(tickets_of("tickets-test.csv"))
    assert "--with-feedback feedback.jsonl" in new["settings"]["command"]


def test_feedback_of_a_table_needs_keys(example: Path, tmp_path: Path) -> None:
    """A source that is no file is a table, whose texts need a key."""
    table = write_csv(tmp_path / "t.csv", tickets_of("tickets.csv"))
    done = train(table, example.parent, "--with-feedback", "labels")
    assert done.returncode == 2
    assert "Add --feedback-keys FILE" in done.stderr


def test_worse_model(example: Path, tmp_path: Path) -> None:
    """With --must-beat a model that is worse on the same rows is one line, and is not written."""
    rows, dice = tickets_of("tickets.csv"), random.Random(1)
    labels = [label for _, label in rows]
    shuffled = [(text, dice.choice(labels)) for text, _ in rows]
    worse = against(example, write_csv(tmp_path / "tickets.csv", shuffled), tmp_path / "models")
    assert worse.returncode == 1
    assert "is worse than tickets" in worse.stderr
    assert "Traceback" not in worse.stderr
    assert not (tmp_path / "models" / "tickets").exists()


def test_model_that_knows_test_rows(example: Path, tmp_path: Path) -> None:
    """A worse model gains nothing by having been trained on test rows: these are left out, and it loses.

    It knows half of the rows to test with; the labels of all its other rows are drawn by lot.
    """
    dice, labels = random.Random(1), manifest_of(example).labels
    known = tickets_of("tickets-test.csv")
    spoilt = [(text, dice.choice(labels)) for text, _ in tickets_of("tickets.csv")]
    options = ("--heads=rf", "--name=worse", "--test-share=0.01")
    table = write_csv(tmp_path / "worse.csv", spoilt + known[: len(known) // 2])
    models = trained(table, tmp_path / "models", *options).parent
    done = against(models / "worse", TICKETS / "tickets.csv", tmp_path / "models")
    assert done.returncode == 0, done.stderr
    assert "tickets is better than worse" in done.stdout
    assert "that worse was trained on" in done.stdout


def test_model_to_compare_with_is_missing(bundle: Path, tmp_path: Path) -> None:
    """A model to compare with that is not there is said before anything is trained."""
    table = write_csv(tmp_path / "tickets.csv", made_up(2, 6))
    done = train(table, tmp_path / "models", "--compare=older")
    assert done.returncode == 1
    assert "is a model" in done.stderr
    assert "train heads" not in done.stderr


def test_two_labels_twice(bundle: Path, tmp_path: Path) -> None:
    """Two labels are enough, and the same rows in CSV and in Parquet give one digest."""
    rows, parquet = made_up(2, 10), tmp_path / "tickets.parquet"
    table = write_csv(tmp_path / "tickets.csv", rows)
    convert = (
        "import sys; from pyarrow import csv, parquet;"
        " parquet.write_table(csv.read_csv(sys.argv[1]), sys.argv[2])"
    )
    subprocess.run([BUILD_PYTHON, "-c", convert, table, parquet], check=True)
    options = ("--heads=mlp,rf,hgb", "--seed=7")
    first, again = (trained(path, tmp_path / path.suffix, *options) for path in (table, parquet))
    assert manifest_of(first).version == manifest_of(again).version
    assert set(manifest_of(first).heads) == {"rf", "hgb", "mlp"}
    assert min(accuracy(first, rows, head) for head in manifest_of(first).heads) > 0.8


def test_what_a_training_leaves(bundle: Path, tmp_path: Path) -> None:
    """A training says where the report is, which says where the model is from; files list faults and answers.

    Without a terminal there are no bars, and labels that differ by case are one where it is asked for.
    """
    rows = [*made_up(2, 20), ("", "queue 000"), *[(text, "QUEUE 001") for text, _ in made_up(3, 2)[:3]]]
    path = write_csv(tmp_path / "table.csv", rows)
    path.write_text(path.read_text().replace("body,queue", "body;queue").replace(",queue ", ";queue "))
    path.write_text(path.read_text().replace(",QUEUE ", ";QUEUE "))
    faults, answers = tmp_path / "faults.csv", tmp_path / "answers.csv"
    options = ("--drop", f"--faults={faults}", f"--predictions={answers}", "--fold-labels", "--heads=logreg")
    done = train(path, tmp_path / "models", *options)
    assert done.returncode == 0, done.stderr
    assert "2 labels;" in done.stdout
    assert done.stdout.splitlines()[-1] == f"Open {tmp_path / 'models' / 'tickets' / 'report.html'}"
    assert "\r" not in done.stderr
    assert faults.read_text().splitlines()[1:] == ["table.csv,41,without a text,"]
    report = json.loads((tmp_path / "models" / "tickets" / "report.json").read_bytes())
    lines = answers.read_text().splitlines()
    assert (lines[0], len(lines) - 1) == ("row,label,predicted,probability", report["summary"]["rows"])
    found = report["settings"]
    assert (found["table"], found["rows read"], found["rows left out"]) == ("table.csv", "44", "1")
    assert found["sha256 of the table"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found["command"].startswith("coldframe train table.csv --text body --label queue --fold-labels")
    assert str(tmp_path) not in found["command"]


def test_json_of_a_training(bundle: Path, tmp_path: Path) -> None:
    """With --json, standard output is one JSON object whose figures are the report's; lines are elsewhere.

    Each row that was read is trained on, tested with, left out as a copy, or dropped for a fault. Beside the
    model are the answers to the validation rows, for the monitor.
    """
    rows = made_up(2, 20)
    test = [(f"later {text}", label) for text, label in rows[:12]]
    table = write_csv(tmp_path / "table.csv", [*rows, ("", "queue 000"), (rows[0][0] + " more", "Queue 000")])
    judge = write_csv(tmp_path / "test.csv", [*test, *rows[:2], ("", "queue 001")])
    done = train(table, tmp_path / "models", f"--test={judge}", "--drop", "--json", "--heads=logreg,rf")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    folder = tmp_path / "models" / "tickets"
    manifest, report = manifest_of(folder), json.loads((folder / "report.json").read_bytes())
    assert (found["name"], found["version"], found["folder"]) == ("tickets", manifest.version, str(folder))
    assert (found["report"], found["is_default"]) == (str(folder / "report.html"), True)
    assert [head["name"] for head in found["heads"]] == ["auto", "logreg", "rf", "ensemble"]
    assert found["heads"] == report["heads"]
    assert found["baseline"] == report["baseline"]["score"]
    counts = found["rows"]
    assert (counts["read"], counts["dropped"], counts["left_out"]) == (57, 3, 2)
    assert (counts["train"], counts["test"]) == (40, 12)
    assert 0 < counts["validation"] < counts["train"]
    reference = load_reference(folder)
    assert reference is not None
    assert (reference.model, reference.counts.texts) == (manifest.version, counts["validation"])
    assert found["seconds"] > 0
    assert f"Open {found['report']}" in done.stderr
    assert "nearly repeat a training row" in found["warnings"][-1]
    assert all(f"Warning: {warning}" in done.stderr for warning in found["warnings"])
    assert "--json" not in report["settings"]["command"]


def test_json_of_a_training_that_fails(bundle: Path, tmp_path: Path) -> None:
    """A training that writes no model prints nothing on standard output, and its error elsewhere."""
    table = write_csv(tmp_path / "tickets.csv", [*made_up(2, 8), ("", "queue 000")])
    done = train(table, tmp_path / "models", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "These rows cannot be used" in done.stderr


def test_missing_options(bundle: Path, tmp_path: Path) -> None:
    """All options that are missing are named at once, with the columns of the table."""
    table = write_csv(tmp_path / "tickets.csv", made_up(2, 6))
    done = subprocess.run([COLDFRAME, "train", table], capture_output=True, text=True)
    assert done.returncode == 2
    assert "Columns of tickets.csv: body, queue" in done.stderr
    assert "Missing options '--text', '--label', '--name'" in done.stderr


def test_faults_are_said_at_once(bundle: Path, tmp_path: Path) -> None:
    """All faults are in one message without a stack trace or a text, and no model is written."""
    rows = [
        *made_up(2, 8),
        ("", "queue 000"),
        ("secret words", "rare"),
        ("one", "queue 000"),
        ("one", "queue 001"),
    ]
    done = train(write_csv(tmp_path / "tickets.csv", rows), tmp_path / "models")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: These rows cannot be used:")
    assert [line.split(":")[1].strip() for line in done.stderr.splitlines()[1:4]] == [
        "1 row (17)",
        "2 rows (19 and 20)",
        "1 row (18)",
    ]
    assert "secret" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "models" / "tickets").exists()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--models=layers/model", "--name=heads"], "is a folder of the repository"),
        (["--must-beat"], "--must-beat needs --compare OTHER"),
        (["--text=nothing"], "has no column 'nothing'. Its columns: body, queue."),
    ],
)
def test_options_that_cannot_be(bundle: Path, tmp_path: Path, options: list[str], expected: str) -> None:
    """An option that cannot be is one line that says what is expected."""
    table = write_csv(tmp_path / "tickets.csv", made_up(2, 6))
    done = subprocess.run(
        command(table, tmp_path / "models", *options), cwd=MODELS.parent, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_folder_that_is_no_model(bundle: Path, tmp_path: Path) -> None:
    """A folder that holds something else is left alone."""
    (tmp_path / "models" / "tickets").mkdir(parents=True)
    done = train(write_csv(tmp_path / "tickets.csv", made_up(2, 6)), tmp_path / "models")
    assert done.returncode == 1
    assert "exists and is not a model" in done.stderr


def test_served_beside_the_example(bundle: Path, example: Path, tmp_path: Path) -> None:
    """A trained model is asked by its name beside the example, and finds the embeddings that it left."""
    (tmp_path / "encoders").symlink_to(example.parent / "encoders")
    for model in (bundle / EXAMPLE, example):
        (tmp_path / model.name).symlink_to(model.resolve())
    models = load_models(Settings(model_dir=tmp_path, models=f"{EXAMPLE},tickets"))
    texts = [text for text, _ in tickets_of("tickets-test.csv")[:12]]
    assert models.default.predict(texts, ["logreg"]).usage.tokens > 0
    found = models.get("tickets").predict(texts, ["logreg"])
    assert (found.usage.tokens, found.usage.cache.embedding, found.usage.cache.l1) == (0, len(texts), 0)
    alone = predictor_of(example).predict(texts, ["logreg"])
    assert found.answers == alone.answers


def test_accuracy_that_validation_supports(bundle: Path, tmp_path: Path) -> None:
    """A model that is to be right more often abstains below a probability; a request may say otherwise."""
    rows = tickets_of("tickets.csv") + tickets_of("tickets-2.csv")
    table = write_csv(tmp_path / "tickets.csv", rows)
    model = trained(table, tmp_path / "models", "--heads=logreg", "--accuracy=0.85")
    manifest = manifest_of(model)
    least = manifest.estimator.min_probability
    assert 0 < least < 1
    assert json.loads((model / "report.json").read_bytes())["min_probability"] == least
    settings = Settings(model_dir=model.parent, models=model.name, log_level="off")
    api = Api(load_models(settings), settings, StartMark())
    vague = "It is the other one, as far as anybody knows."
    found = [post(api, {"text": vague, **more}) for more in ({}, {"min_probability": 0})]
    labels = [json.loads(reply.body)["predictions"][0]["heads"]["auto"]["label"] for reply in found]
    assert labels[0] is None
    assert labels[1] in manifest.labels


def test_accuracy_out_of_reach(bundle: Path, tmp_path: Path) -> None:
    """An accuracy that so few rows cannot promise is one line that says what they can, and no model."""
    done = train(TICKETS / "tickets.csv", tmp_path / "models", "--heads=logreg", "--accuracy=0.999")
    assert done.returncode == 1
    assert "Error: auto: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "models" / "tickets").exists()


def test_killed_half_way(example: Path, tmp_path: Path) -> None:
    """A training that is killed while heads are trained leaves the model that was there before."""
    models = tmp_path / "models"
    older = Path(shutil.copytree(example, models / "tickets"))
    version = manifest_of(older).version
    process = subprocess.Popen(
        command(write_csv(tmp_path / "newer.csv", made_up(4, 12)), models),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stderr is not None
    seen = b""
    while b"train heads" not in seen:
        part = os.read(process.stderr.fileno(), 4096)
        assert part, seen.decode()
        seen += part
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert manifest_of(older).version == version
    _, [verified] = verify_bundle(models)
    assert verified.version == version


def test_model_that_is_not_there(bundle: Path) -> None:
    """`up --model` with an unknown name is one line that says how a model is made."""
    done = subprocess.run([COLDFRAME, "up", "--model", "nothing"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "no model 'nothing'" in done.stderr
    assert "make 'nothing' with `coldframe train --name`" in done.stderr
