"""A report on disk: figures for programs, a page for people."""

import csv
from pathlib import Path

import msgspec

from coldframe_training.report.figures.evaluation import AUTO, Evaluation, answers_of
from coldframe_training.report.figures.report import Report
from coldframe_training.report.page import render_page

REPORT_JSON = "report.json"
REPORT_PAGE = "report.html"
REPORT_DIGESTS = "report.digests"  # of the texts that the model was trained on


def write_report(report: Report, folder: Path) -> None:
    """Writes `report.json` and `report.html` to `folder`, which exists. No file has a text of the table."""
    write_figures(report, folder)
    # A label may hold what UTF-8 cannot: half of a surrogate pair becomes a character reference.
    (folder / REPORT_PAGE).write_bytes(render_page(report).encode("utf-8", errors="xmlcharrefreplace"))


def write_figures(report: Report, folder: Path) -> None:
    """Writes `report.json` to `folder`, which exists."""
    (folder / REPORT_JSON).write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")


def write_predictions(evaluation: Evaluation, path: Path) -> None:
    """Writes a CSV file of the answers of `auto`: row, label, predicted label, probability; no texts."""
    answers, probability = answers_of(evaluation.probabilities[AUTO])
    labels = evaluation.labels
    rows = zip(evaluation.rows, evaluation.target, answers, probability, strict=True)
    with path.open("w", newline="", encoding="utf-8", errors="xmlcharrefreplace") as file:
        writer = csv.writer(file)
        writer.writerow(("row", "label", "predicted", "probability"))
        writer.writerows((row, labels[true], labels[by], f"{share:.6f}") for row, true, by, share in rows)


def read_figures(folder: Path) -> Report:
    """The report whose `report.json` is in `folder`."""
    return msgspec.json.decode((folder / REPORT_JSON).read_bytes(), type=Report)
