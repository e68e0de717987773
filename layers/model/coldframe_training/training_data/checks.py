"""Faults of a table, reported all at once: row numbers and counts, never a text.

A fault stops the training unless its rows are to be dropped.
"""

import csv
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from coldframe.errors import Invalid
from coldframe.model.tokenizer import normalise
from coldframe_training.training_data.table import Table, TableFault, count_rows

MIN_ROWS = 5  # of a label: three to train on, one to validate, one to test
MAX_LABELS = 1000
_SHOWN = 5
_NAME_LENGTH = 40  # characters of a label in a message


class Finding(NamedTuple):
    """One fault, and the positions of the rows that have it.

    partners: for each of these rows, the other rows that it is in conflict with, if the fault is one.
    """

    fault: str
    rows: list[int]
    partners: Sequence[Sequence[int]] = ()

    def __str__(self) -> str:
        if not self.partners:
            return f"{self.fault}: {count_rows([row + 1 for row in self.rows])}"
        groups = dict.fromkeys(
            tuple(sorted([row, *others])) for row, others in zip(self.rows, self.partners, strict=True)
        )
        examples = [" and ".join(str(row + 1) for row in group) for group in list(groups)[:_SHOWN]]
        more = ["…"] if len(groups) > _SHOWN else []
        return f"{self.fault}: {len(self.rows):,} rows ({', '.join([*examples, *more])})"


class Checked(NamedTuple):
    """A table without faults; its texts are in their normal form.

    numbers: of the rows in the file, from 1. dropped: the faults whose rows were left out.
    notes: remarks about rows that are not faults. read: rows of the file.
    """

    table: Table
    numbers: list[int]
    dropped: list[Finding]
    notes: Sequence[str] = ()
    read: int = 0


def check_table(
    table: Table,
    drop: bool = False,
    is_test: bool = False,
    spellings: Mapping[str, str] | None = None,
    report: Callable[[Sequence[Finding]], None] | None = None,
) -> Checked:
    """The table as it can be trained on. White space around labels counts for nothing.

    drop: rows with a fault are left out; otherwise they are an error.
    is_test: the rows are to judge with only, so that a label may have one row and be the only one.
    spellings: of labels, by their form without case; labels that differ by case are then one label.
    report: is handed all faults before any error.
    Raises TableFault with every fault found, or when fewer than two labels remain.
    """
    table = table._replace(labels=[_spell(label, spellings) for label in table.labels])
    findings: list[Finding] = []
    rows = list(range(len(table.texts)))
    for find in _FAULTS[:-1] if is_test else _FAULTS:
        for finding in find(table, rows):
            findings.append(finding)
            faulty = set(finding.rows)
            rows = [row for row in rows if row not in faulty]
    if report:
        report(findings)
    if findings and not drop:
        faults = "\n  ".join(map(str, findings))
        raise TableFault(
            f"These rows cannot be used:\n  {faults}\nMend them, or leave them out with --drop;"
            " --faults FILE lists them all."
        )
    if not is_test:
        _check_labels({table.labels[row] for row in rows}, findings)
    rest = table.take(rows)
    normal = rest._replace(texts=[normalise(text) for text in rest.texts])
    return Checked(normal, [row + 1 for row in rows], findings, _notes(normal.labels), len(table.texts))


def spellings_of(labels: Sequence[str]) -> dict[str, str]:
    """The most frequent spelling of each label, by its form without case; of equals the first by name."""
    counts = Counter(label.strip() for label in labels)
    ranked = sorted(counts, key=lambda label: (-counts[label], label))
    return {label.casefold(): label for label in reversed(ranked)}


def write_faults(path: Path, table: str, findings: Sequence[Finding]) -> None:
    """Adds all faulty rows to a CSV file: table, row, fault and rows in conflict; no texts."""
    is_new = not path.exists() or not path.stat().st_size
    with path.open("a", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        if is_new:
            rows.writerow(("table", "row", "fault", "in conflict with"))
        for finding in findings:
            partners = finding.partners or [()] * len(finding.rows)
            for row, others in zip(finding.rows, partners, strict=True):
                rows.writerow((table, row + 1, finding.fault, " ".join(str(other + 1) for other in others)))


def _spell(label: str, spellings: Mapping[str, str] | None) -> str:
    bare = label.strip()
    return bare if spellings is None else spellings.get(bare.casefold(), bare)


def _notes(labels: Sequence[str]) -> list[str]:
    """Labels that are several classes by their case alone."""
    forms = defaultdict(set)
    for label in labels:
        forms[label.casefold()].add(label)
    same = sorted(label for spellings in forms.values() if len(spellings) > 1 for label in spellings)
    if not same:
        return []
    return [f"{len(same)} labels differ by case alone{_named(same)}. Make them one with --fold-labels."]


def _check_labels(labels: set[str], findings: Sequence[Finding]) -> None:
    without = f" without the rows that were dropped ({'; '.join(map(str, findings))})" if findings else ""
    if len(labels) < 2:
        count = f"{len(labels)} label{'s' * (len(labels) != 1)}"
        raise TableFault(f"The table has {count}{without}. Expected two or more: one class cannot be learnt.")
    if len(labels) > MAX_LABELS:
        raise TableFault(f"The table has {len(labels):,} labels. Expected at most {MAX_LABELS:,}.")


def _without_text(table: Table, rows: Sequence[int]) -> list[Finding]:
    return _finding("without a text", [row for row in rows if not table.texts[row].strip()])


def _without_label(table: Table, rows: Sequence[int]) -> list[Finding]:
    return _finding("without a label", [row for row in rows if not table.labels[row].strip()])


def _not_unicode(table: Table, rows: Sequence[int]) -> list[Finding]:
    return _finding(
        "with a text that is not Unicode", [row for row in rows if not _is_unicode(table.texts[row])]
    )


def _under_two_labels(table: Table, rows: Sequence[int]) -> list[Finding]:
    places = defaultdict(list)
    for row in rows:
        places[normalise(table.texts[row])].append(row)
    partners = {
        row: [other for other in group if other != row]
        for group in places.values()
        if len({table.labels[row] for row in group}) > 1
        for row in group
    }
    conflicts = sorted(partners)
    fault = "with one text under several labels"
    return [Finding(fault, conflicts, [partners[row] for row in conflicts])] if conflicts else []


def _of_rare_labels(table: Table, rows: Sequence[int]) -> list[Finding]:
    """Counted by different texts: a copy teaches nothing, and cannot be on both sides of a split."""
    different = {(table.labels[row], normalise(table.texts[row])) for row in rows}
    counts = Counter(label for label, _ in different)
    rare = sorted(label for label, count in counts.items() if count < MIN_ROWS)
    labels = f"{len(rare):,} label{'s' * (len(rare) != 1)}"
    fault = f"of {labels} with fewer than {MIN_ROWS} different texts{_named(rare)}"
    return _finding(fault, [row for row in rows if table.labels[row] in set(rare)])


def _named(labels: Sequence[str]) -> str:
    """Labels in brackets; long ones are left out, since they may be texts in a wrong column."""
    short = [repr(label) for label in labels if len(label) <= _NAME_LENGTH]
    names = [*short[:_SHOWN], *["…"] * (len(labels) > min(len(short), _SHOWN))]
    return f" ({', '.join(names)})" if short else ""


def _finding(fault: str, rows: list[int]) -> list[Finding]:
    return [Finding(fault, rows)] if rows else []


def _is_unicode(text: str) -> bool:
    try:
        normalise(text)
    except Invalid:
        return False
    return True


_FAULTS: tuple[Callable[[Table, Sequence[int]], list[Finding]], ...] = (
    _without_text,
    _without_label,
    _not_unicode,
    _under_two_labels,
    _of_rare_labels,  # last: what the others leave
)
