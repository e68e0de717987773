"""Spark: `coldframe.spark` beside a naive map of the same model, row by row, on sentences with repeats."""

import json
import os
import random
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from coldframe.errors import ColdframeError
from coldframe_bench.data.texts import load_texts
from coldframe_bench.records.tables import table
from coldframe_local.paths import ROOT, SPARK_PYTHON, default_model, python_path

_POSTS = 8000  # all of the data set
_EXPONENT = 0.7
"""Exponent of the sentences' popularity, by rank: Breslau et al. 1999 found 0.64 to 0.83 for web requests."""


class SparkFailed(ColdframeError):
    """The comparison cannot be run."""


def run(model_dir: Path, rows: int, cores: int, rounds: int, seed: int) -> None:
    """Prints one table: how many times as quick as the naive map ours is. Raises SparkFailed."""
    if not SPARK_PYTHON.exists():
        raise SparkFailed(f"{SPARK_PYTHON} is missing. Run `make .venv-spark/stamp`; Spark needs Java, too.")
    source, texts = make_rows(rows, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        pq.write_table(pa.table({"id": range(rows), "body": texts}), path)
        report = _run_job(path, model_dir, cores, rounds)
    if not report["same"]:
        raise SparkFailed("Both sides ran, and their labels differ.")
    naive_s, ours_s = report["taken_s"]["naive"], report["taken_s"]["ours"]
    ratio = statistics.median(naive / ours for naive, ours in zip(naive_s, ours_s, strict=True))
    lines = []
    for name, times_s, quicker in (
        ("naive `mapInPandas`, row by row", naive_s, "1"),
        ("`coldframe.spark.predict`", ours_s, f"**{ratio:.2f}**"),
    ):
        middle_s = statistics.median(times_s)
        lines.append((name, f"{middle_s:.1f}", f"{rows / middle_s:,.0f}", quicker))
    print(table("side | seconds | rows/s | times as quick", lines))
    print(
        f"{source}: {rows:,} rows, {len(set(texts)):,} of them distinct; {cores} cores,"
        f" median of {rounds} rounds; same labels; load average {os.getloadavg()[0]:.1f}."
    )


def make_rows(rows: int, seed: int) -> tuple[str, list[str]]:
    """Sentences drawn by chance, a few of them often; where they are from comes first."""
    mix = load_texts(_POSTS, seed)
    sentences = list(dict.fromkeys(sentence for post in mix.texts for sentence in split(post)))
    drawn = random.Random(seed)
    drawn.shuffle(sentences)
    weights = [rank**-_EXPONENT for rank in range(1, len(sentences) + 1)]
    return f"Sentences of {mix.source}", drawn.choices(sentences, weights, k=rows)


def split(post: str) -> list[str]:
    """Its sentences of at least three words."""
    sentences = (" ".join(part.split()) for part in re.split(r"(?<=[.!?])\s+|\n\n", post))
    return [sentence for sentence in sentences if sentence.count(" ") >= 2]


def _run_job(path: Path, model_dir: Path, cores: int, rounds: int) -> dict[str, dict[str, list[float]]]:
    arguments = [str(path), str(model_dir.resolve()), default_model(), str(cores), str(rounds)]
    environ = os.environ | {
        "PYTHONPATH": python_path(),
        "PYSPARK_PYTHON": str(SPARK_PYTHON),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [str(SPARK_PYTHON), "-m", "coldframe_bench.targets.spark_job", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    if done.returncode:
        raise SparkFailed(f"The job failed: {done.stderr.strip().splitlines()[-1]}")
    report: dict[str, dict[str, list[float]]] = json.loads(done.stdout.splitlines()[-1])
    return report
