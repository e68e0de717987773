"""`coldframe train` on 1,000 rows of 20 Newsgroups, beside the published figures of other ways to train.

    COLDFRAME_DATA=FOLDER PYTHONPATH=bench:local:layers/model:layers/shared/python .venv-build/bin/python -m \
        coldframe_bench.studies.few_rows RAW.jsonl

Rows are drawn from all stripped documents of the training split, once for each seed. The test rows are the
whole test split. A document without text is a wrong answer of `coldframe train`, which does not take it.
Writes a line for each seed and way to RAW.jsonl, and prints a Markdown table.
TF-IDF is trained here too, as in the published table: it shows whether rows and metric are the same.
Source of the published figures: github.com/MinishLab/model2vec, results/README.md at commit bb49b59, row
`20_newsgroups`: 1,000 rows, the whole test split, no parameter tuned.
"""

import csv
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline

from coldframe_training.training_data.data import Split, load_split

_ROWS, _SEEDS = 1_000, (1, 2, 3)
_NOBODY = -1  # the label of a document that no model answered
_PUBLISHED = {
    "TF-IDF + logistic regression": 50.71,
    "model2vec + logistic regression": 56.24,
    "model2vec, fine-tuned": 57.94,
    "SetFit, all-MiniLM-L6-v2": 61.29,
    "bge-base + logistic regression": 67.39,
}


class Result(NamedTuple):
    """One way, trained on the rows of one seed. accuracy, macro_f1: over all test rows, 0 to 1.

    accuracy_with_text: over test rows with text. seconds: of the training, and of the answers.
    """

    way: str
    seed: int
    rows: int
    accuracy: float
    macro_f1: float
    accuracy_with_text: float
    seconds: float


def main() -> None:
    """Writes the raw lines and prints the table."""
    if len(sys.argv) != 2:
        sys.exit(
            "Error: no file for the raw lines. Give one: python -m coldframe_bench.studies.few_rows RAW.jsonl"
        )
    train, test = load_split("train"), load_split("test")
    results = []
    with Path(sys.argv[1]).open("w", encoding="utf-8") as raw:
        for result in results_of(train, test):
            results.append(result)
            print(json.dumps(result._asdict()), file=raw, flush=True)
    print("\n".join(table_of(results)))


def results_of(train: Split, test: Split) -> Iterator[Result]:
    """Both ways for each seed."""
    for seed in _SEEDS:
        rows = np.random.default_rng(seed).choice(len(train.stripped), _ROWS, replace=False)
        for way, answer in (("coldframe train", by_coldframe), ("TF-IDF here", by_tfidf)):
            start = time.perf_counter()
            answers = answer(train, rows, test)
            yield judge(way, seed, answers, test, time.perf_counter() - start)


def judge(way: str, seed: int, answers: NDArray[np.int64], test: Split, seconds: float) -> Result:
    """Figures of answers to all test rows, (n,)."""
    right = answers == test.target
    has_text = np.array([bool(text.strip()) for text in test.stripped])
    known = list(range(len(test.labels)))
    f1 = float(f1_score(test.target, answers, labels=known, average="macro"))
    return Result(way, seed, _ROWS, float(right.mean()), f1, float(right[has_text].mean()), seconds)


def by_coldframe(train: Split, rows: NDArray[np.int64], test: Split) -> NDArray[np.int64]:
    """Answers of `auto` after `coldframe train`; documents without text have none."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _write_table(folder / "train.csv", train, rows.tolist())
        kept = _write_table(folder / "test.csv", test, list(range(len(test.target))))
        command = [sys.executable, "-m", "coldframe_training.train_table", str(folder / "train.csv")]
        options = {
            "text": "text",
            "label": "label",
            "name": "few-rows",
            "test": folder / "test.csv",
            "predictions": folder / "answers.csv",
            "models": folder / "models",
        }
        subprocess.run(
            [*command, "--drop", *(f"--{name}={value}" for name, value in options.items())], check=True
        )
        return _read_answers(folder / "answers.csv", kept, test)


def _write_table(path: Path, split: Split, rows: list[int]) -> list[int]:
    """Writes the rows that have text; returns them."""
    kept = [row for row in rows if split.stripped[row].strip()]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text", "label"])
        table.writerows([split.stripped[row], split.labels[split.target[row]]] for row in kept)
    return kept


def _read_answers(path: Path, kept: list[int], test: Split) -> NDArray[np.int64]:
    """Positions of the answered labels, (n,), from the file of `--predictions`."""
    answers = np.full(len(test.target), _NOBODY)
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            row = kept[int(line["row"]) - 1]
            if line["label"] != test.labels[test.target[row]]:
                sys.exit(f"Error: answers and test rows differ at row {row}. Report this as a bug.")
            answers[row] = test.labels.index(line["predicted"])
    return answers


def by_tfidf(train: Split, rows: NDArray[np.int64], test: Split) -> NDArray[np.int64]:
    """Answers of TF-IDF with a logistic regression that chooses its own penalty."""
    model = make_pipeline(TfidfVectorizer(), LogisticRegressionCV())
    model.fit([train.stripped[row] for row in rows], train.target[rows])
    answers: NDArray[np.int64] = model.predict(test.stripped)
    return answers


def table_of(results: list[Result]) -> Iterator[str]:
    """Means and ranges over the seeds, then the published figures."""
    yield "| way | accuracy, % | macro F1, % | accuracy on rows with text, % |\n|---|---|---|---|"
    for way in dict.fromkeys(result.way for result in results):
        own = [result for result in results if result.way == way]
        columns = (
            [100 * result.accuracy for result in own],
            [100 * result.macro_f1 for result in own],
            [100 * result.accuracy_with_text for result in own],
        )
        cells = (f"{sum(values) / len(own):.1f} ({min(values):.1f}–{max(values):.1f})" for values in columns)
        yield f"| {way} | {' | '.join(cells)} |"
    for way, figure in _PUBLISHED.items():
        yield f"| {way}, published | {figure:.1f} | | |"


if __name__ == "__main__":
    main()
