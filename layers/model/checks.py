"""What is wrong with a table, said at once: row numbers and counts, never a text.

A fault stops the training unless the rows that have it are to be dropped.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from coldframe.errors import Invalid
from coldframe.text import normalise
from layers.model.table import Table, TableFault, count_rows

MIN_ROWS = 5  # of a label: three to train on, one to validate, one to test
MAX_LABELS = 1000


class Finding(NamedTuple):
    """One fault, and the positions of the rows that have it."""

    fault: str
    rows: list[int]

    def __str__(self) -> str:
        return f"{self.fault}: {count_rows([row + 1 for row in self.rows])}"


class Checked(NamedTuple):
    """A table without faults; its texts are in their normal form.

    numbers: of the rows in the file, from 1. dropped: the faults whose rows were left out.
    """

    table: Table
    numbers: list[int]
    dropped: list[Finding]


def check_table(table: Table, drop: bool = False, is_test: bool = False) -> Checked:
    """The table as it can be trained on.

    drop: rows with a fault are left out; otherwise they are an error.
    is_test: the rows are to judge with only, so that a label may have one row and be the only one.
    Raises TableFault with every fault found, or when fewer than two labels remain.
    """
    findings: list[Finding] = []
    kept = list(range(len(table.texts)))
    for find in _FAULTS[:-1] if is_test else _FAULTS:
        for finding in find(table, kept):
            findings.append(finding)
            faulty = set(finding.rows)
            kept = [row for row in kept if row not in faulty]
    if findings and not drop:
        faults = "\n  ".join(map(str, findings))
        raise TableFault(f"These rows cannot be used:\n  {faults}\nMend them, or leave them out with --drop.")
    if not is_test:
        _check_labels({table.labels[row] for row in kept}, findings)
    rest = table.take(kept)
    normal = rest._replace(texts=[normalise(text) for text in rest.texts])
    return Checked(normal, [row + 1 for row in kept], findings)


def _check_labels(labels: set[str], findings: Sequence[Finding]) -> None:
    without = f" without the rows that were dropped ({'; '.join(map(str, findings))})" if findings else ""
    if len(labels) < 2:
        found = f"{len(labels)} label{'s' * (len(labels) != 1)}"
        raise TableFault(f"The table has {found}{without}. Expected two or more: one class cannot be learnt.")
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
    conflicts = [found for found in places.values() if len({table.labels[row] for row in found}) > 1]
    return _finding("with one text under several labels", sorted(row for found in conflicts for row in found))


def _of_rare_labels(table: Table, rows: Sequence[int]) -> list[Finding]:
    """Counted by different texts: a copy teaches nothing, and cannot be on both sides of a split."""
    different = {(table.labels[row], normalise(table.texts[row])) for row in rows}
    counts = Counter(label for label, _ in different)
    rare = {label for label, count in counts.items() if count < MIN_ROWS}
    fault = f"of {len(rare):,} labels with fewer than {MIN_ROWS} different texts"
    return _finding(fault, [row for row in rows if table.labels[row] in rare])


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
