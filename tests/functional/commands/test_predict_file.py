"""`coldframe predict --file`: a whole table, in order, and continued where it was killed."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coldframe.columns import predict_column
from coldframe.pipeline.predictor import Predictor
from coldframe_bench.data.texts import sentences
from coldframe_local.batch.predict_file import answering
from coldframe_local.batch.predict_file.errors import Stopped
from tests.conftest import tiny_predictor
from tests.functional.commands.test_cli import COLDFRAME, coldframe

pytestmark = pytest.mark.waits

ROWS = 2500
TEXTS = [None if row % 50 == 7 else f"{text} {row % 700}" for row, text in enumerate(sentences() * 100)][
    :ROWS
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of several parts, with texts that repeat and rows without one."""
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"id": range(len(TEXTS)), "body": TEXTS}), path)
    return path


def command(table: Path, out: Path, *more: str) -> list[str]:
    return ["predict", "--file", str(table), "--text", "body", "--out", str(out), *more]


def records(out: Path) -> list[dict[str, Any]]:
    return pq.read_table(out).to_pylist()  # type: ignore[no-any-return]


def test_answers_are_those_of_the_predictor(table: Path, tmp_path: Path, predictor: Predictor) -> None:
    """Rows keep their order and columns; answers equal `Predictor.predict`'s to the bit, null for no text."""
    out = tmp_path / "out.parquet"
    texts = [*TEXTS[:200], *TEXTS[:1000]]  # two parts
    pq.write_table(pa.table({"id": range(len(texts)), "body": texts}), table)
    done = coldframe(*command(table, out, "--head", "auto", "--head", "ensemble"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{out}: {len(texts):,} rows\n"
    expected = predict_column(predictor, texts, ["auto", "ensemble"])
    rows = records(out)
    assert [row["id"] for row in rows] == list(range(len(texts)))
    assert [row["body"] for row in rows] == texts
    for head in ("auto", "ensemble"):
        for name in ("label", "probability", "out_of_distribution"):
            answers = [None if answer is None else getattr(answer, name) for answer in expected[head]]
            assert [row[f"{name}_{head}"] for row in rows] == answers
    assert {row["by_auto"] for row in rows} == {"estimator", "ensemble", None}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]


def test_a_table_names_its_model(tmp_path: Path, predictor: Predictor) -> None:
    """Parquet has the model's name and version beside the metadata of the input."""
    inside, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"body": TEXTS[:3]}).replace_schema_metadata({"owner": "us"}), inside)
    done = coldframe(*command(inside, out))
    assert done.returncode == 0, done.stderr
    metadata = pq.read_schema(out).metadata
    assert metadata[b"coldframe.version"].decode() == predictor.manifest.version
    assert (metadata[b"coldframe.model"].decode(), metadata[b"owner"]) == (predictor.manifest.name, b"us")


def test_a_model_that_is_replaced_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part is not answered by another model than the run was started with."""
    monkeypatch.setattr(answering, "_predictor", tiny_predictor)
    part = tmp_path / "part.arrow"
    with pytest.raises(Stopped, match="The model was replaced while the file was answered"):
        answering.answer(part, ["abc"], ["auto"], "sha256:before")
    assert not part.exists()


def test_a_killed_run_goes_on(table: Path, tmp_path: Path) -> None:
    """Killed and started again, the command keeps what was answered, and writes the same bytes as one run."""
    whole, out = tmp_path / "whole.parquet", tmp_path / "out.parquet"
    assert coldframe(*command(table, whole)).returncode == 0
    process = subprocess.Popen(
        [COLDFRAME, *command(table, out, "--processes", "1")], stderr=subprocess.DEVNULL, env=dict(os.environ)
    )
    folder = tmp_path / ".out.parquet.parts"
    while process.poll() is None and not list(folder.glob("*.arrow")):
        pass
    process.kill()
    process.wait()
    assert not out.exists()
    kept = len(list(folder.glob("*.arrow")))
    assert kept > 0
    again = coldframe(*command(table, out))
    assert again.returncode == 0, again.stderr
    assert "answered by an earlier run" in again.stdout
    assert out.read_bytes() == whole.read_bytes()
    assert not folder.exists()


def test_ctrl_c_says_how_to_go_on(table: Path, tmp_path: Path) -> None:
    """Interrupted, the command says how far it came and what to do, and leaves no output."""
    out = tmp_path / "out.csv"
    texts = [f"{text} {number}" for number in range(10) for text in TEXTS]  # more than is done meanwhile
    pq.write_table(pa.table({"body": texts}), table)
    process = subprocess.Popen(
        [COLDFRAME, *command(table, out, "--processes", "1")], stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and not list((tmp_path / ".out.csv.parts").glob("*.arrow")):
        pass
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Run the same command again to continue." in said
    assert not out.exists()


def test_kinds(tmp_path: Path) -> None:
    """CSV in, JSON Lines out: the columns of the input stay, the numbers are the API's."""
    table, out = tmp_path / "in.csv", tmp_path / "out.jsonl"
    table.write_text('id,body\n01,"The shuttle reached orbit, they said"\n02,\n')
    done = coldframe(*command(table, out, "--prefix", "predicted_"))
    assert done.returncode == 0, done.stderr
    first, second = map(json.loads, out.read_text().splitlines())
    (answer,) = json.loads(coldframe("predict", "The shuttle reached orbit, they said").stdout).values()
    assert first["id"] == "01"
    assert [first["predicted_label"], first["predicted_probability"]] == [
        answer["label"],
        answer["probability"],
    ]
    assert second == {"id": "02", "body": None} | dict.fromkeys(set(first) - {"id", "body"})


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--head", "no-such-head"], '"no-such-head" is not a head of this model'),
        (["--top-k", "3"], "give neither TEXTS nor --top-k"),
        (["--out", "/nowhere/out.csv"], "/nowhere is not a folder"),
        (["--out", "out.xlsx"], "ending '.xlsx'"),
        (["--text", "nothing"], "no column 'nothing'"),
    ],
)
def test_refused(table: Path, tmp_path: Path, more: list[str], said: str) -> None:
    """What cannot be done is one line that says why, and leaves nothing behind."""
    done = coldframe(*command(table, tmp_path / "out.parquet", *more))
    assert done.returncode > 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_a_column_of_the_input_is_never_replaced(tmp_path: Path) -> None:
    """A table that has a column `label` is refused, with the option that helps; so is the input as output."""
    table = tmp_path / "in.csv"
    table.write_text("label,body\nx,y\n")
    done = coldframe(*command(table, tmp_path / "out.csv"))
    assert "has a column 'label' already" in done.stderr
    assert "--prefix" in done.stderr
    assert "is the file to read" in coldframe(*command(table, table)).stderr


def test_options_of_tables_need_a_table() -> None:
    """An option that only tables have is refused without one, and a table needs its column and output."""
    assert "--out is for tables" in coldframe("predict", "text", "--out", "x.csv").stderr
    assert "Missing option '--text'" in coldframe("predict", "--file", "x.csv").stderr
