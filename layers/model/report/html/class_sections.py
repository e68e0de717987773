"""Sections of the page about single classes and rows. They stay readable with a thousand classes."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from layers.model.report.figures.classes import ClassScore
from layers.model.report.figures.confusion import dense_matrix
from layers.model.report.figures.report import Report
from layers.model.report.figures.words import NOTHING, count, percent, with_interval
from layers.model.report.html.markup import Child, node, table
from layers.model.report.html.matrix import MOST_CLASSES, plot_matrix
from layers.model.report.html.sections import section

_SHOWN = 30  # classes
_FIRST = 10  # pairs and mistakes


def classes(report: Report) -> Element:
    """Precision, recall, F1 and support; the classes with the lowest F1 first."""
    ranked = sorted(report.classes, key=lambda score: (2.0 if score.f1 is None else score.f1, -score.support))
    first, folded = ranked[:_SHOWN], ranked[_SHOWN:]
    absent = sum(not score.support for score in ranked)
    without = f" {count(absent, 'class')} without held-out rows come last." if absent else ""
    return section(
        "Classes, the hardest first",
        node(
            "p",
            "Precision: of the rows that were called so, how many are. Recall: of the rows that are so, how"
            f" many were found. F1 is the harmonic mean of both. Support: held-out rows.{without}",
        ),
        _class_table(first),
        _folded(f"{count(len(folded), 'more class')}", _class_table(folded)) if folded else None,
    )


def _class_table(scores: Sequence[ClassScore]) -> Element:
    headings = ["class", "F1", "precision", "recall", "support", "called so", "trained on"]
    return table(headings, map(_class_row, scores))


def _class_row(score: ClassScore) -> list[Child]:
    return [
        score.label,
        _bar(score.f1),
        percent(score.precision),
        with_interval(score.recall),
        f"{score.support:,}",
        f"{score.predicted:,}",
        NOTHING if score.trained_on is None else f"{score.trained_on:,}",
    ]


def _bar(share: float | None) -> Child:
    if share is None:
        return NOTHING
    fill = node("i", style=f"inline-size: {share:.1%}")
    return node("span", node("span", fill, class_="bar"), percent(share), class_="barred")


def confusions(report: Report) -> Element:
    """The matrix as far as it can be read, and the pairs that are confused most."""
    wrong = sum(cell.count for cell in report.confusion if cell.label != cell.said)
    headings = ["is", "was taken for", "rows", "share of its rows"]
    rows = [[pair.label, pair.said, f"{pair.count:,}", percent(pair.share)] for pair in report.confused]
    return section(
        "What is taken for what",
        node("p", f"{count(wrong, 'held-out row')} of {report.summary.rows:,} were answered wrongly."),
        _matrix(report),
        *([node("h3", "Confused most often"), *_long_table(headings, rows, 2, "pair")] if rows else []),
    )


def _matrix(report: Report) -> Child:
    if report.summary.classes > MOST_CLASSES:
        return node(
            "p", f"A matrix of {count(report.summary.classes, 'class')} cannot be read; report.json has it."
        )
    labels = [score.label for score in report.classes]
    words = (
        "Rows are labels, columns are answers. The stronger its colour, the larger a cell's share of its row."
    )
    plot = plot_matrix(dense_matrix(report.confusion, len(labels)), labels)
    return node("div", node("p", words), plot)


def mistakes(report: Report) -> Element | None:
    """Row numbers to look up in the table."""
    if not report.mistakes:
        return None
    headings = ["row", "label in the table", "answer", "probability"]
    rows = [
        [str(mistake.row), mistake.label, mistake.said, f"{mistake.probability:.3f}"]
        for mistake in report.mistakes
    ]
    return section(
        "The surest mistakes",
        node(
            "p",
            "Look these rows up in the table: labels that are wrong there are often among them."
            " Row 1 is the first row of data. The report holds no texts.",
        ),
        *_long_table(headings, rows, 3, "mistake"),
    )


def _long_table(
    headings: Sequence[str], rows: Sequence[Sequence[Child]], words: int, kind: str
) -> list[Element]:
    """The first rows, and the others folded."""
    head, rest = rows[:_FIRST], rows[_FIRST:]
    first = table(headings, head, words)
    return [first, _folded(f"{len(rest)} more {kind}s", table(headings, rest, words))] if rest else [first]


def _folded(summary: str, *children: Child) -> Element:
    return node("details", node("summary", summary), *children)
