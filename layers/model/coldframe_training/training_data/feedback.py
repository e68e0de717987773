"""Rows of feedback beside a table: random ones join it, complaints are trained on and never judged with."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from coldframe.errors import Invalid
from coldframe.feedback.rows import FeedbackRow
from coldframe.model.tokenizer import normalise
from coldframe_training.training_data.checks import Checked, Finding
from coldframe_training.training_data.table import Table, TableFault, count_rows

_ROWS = msgspec.json.Decoder(FeedbackRow)


class Feedback(NamedTuple):
    """Rows that can be used, and why the others cannot.

    random: rows that chance chose. Each has the side that its text gives it, as a row of the table has.
    complaints: the other rows. numbers: of the random rows in the file, from 1.
    left_out: positions of the other rows, by reason; no texts.
    """

    random: Table
    complaints: Table
    numbers: list[int]
    left_out: list[Finding]

    @property
    def used(self) -> int:
        """How many rows can be used."""
        return len(self.random.texts) + len(self.complaints.texts)

    @property
    def read(self) -> int:
        """How many rows there were."""
        return self.used + sum(len(finding.rows) for finding in self.left_out)

    @property
    def line(self) -> str:
        """The rows by their use."""
        return (
            f"feedback: {len(self.random.texts):,} random rows, which join the table;"
            f" {len(self.complaints.texts):,} complaints, which are trained on only"
        )

    @property
    def provenance(self) -> dict[str, str]:
        """Lines for the model's report."""
        return {"feedback": self.line.removeprefix("feedback: ")} if self.read else {}

    def join(self, table: Checked) -> Checked:
        """The table with the random rows behind its own; their numbers follow those of the file."""
        rows = append_rows(table.table, self.random)
        return table._replace(
            table=rows, numbers=table.numbers + [table.read + number for number in self.numbers]
        )


def read_feedback(path: Path) -> list[FeedbackRow]:
    """The rows of a file of JSON lines, as `coldframe feedback texts` prints them. Raises TableFault."""
    rows: list[FeedbackRow] = []
    broken: list[int] = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            rows.append(_ROWS.decode(line))
        except msgspec.MsgspecError:
            broken.append(number)
    if broken:
        raise TableFault(
            f"The feedback has no row in {count_rows(broken)}. Expected a JSON object per line with `text`"
            " and `label`, as `coldframe feedback texts` prints it."
        )
    return rows


def usable_feedback(
    rows: Sequence[FeedbackRow],
    tables: Sequence[Table],
    models: frozenset[str],
    spellings: Mapping[str, str] | None = None,
) -> Feedback:
    """The rows that can be trained on. tables: checked; the first has the labels, a second is judged with.

    models: names of the models whose feedback counts. spellings: of labels, as `check_table` has them.
    Raises TableFault where there are rows, and none is of these models.
    """
    left_out: list[Finding] = []
    places = list(range(len(rows)))
    texts = [_normal(row.text) for row in rows]
    labels = [_spell(row.label, spellings) for row in rows]

    def leave_out(reason: str, is_out: Callable[[int], bool]) -> None:
        out = [place for place in places if is_out(place)]
        if out:
            left_out.append(Finding(reason, out))
            places[:] = [place for place in places if place not in set(out)]

    leave_out("of another model", lambda place: rows[place].model not in models | {""})
    if rows and not places:
        names = ", ".join(sorted({row.model for row in rows}))
        raise TableFault(
            f"The feedback is of other models: {names}. Name those whose labels mean the same with"
            " --feedback-models."
        )
    labels_to_learn = set(tables[0].labels)
    in_table = {
        text: label for table in tables for text, label in zip(table.texts, table.labels, strict=True)
    }
    leave_out("without a text", lambda place: not texts[place])
    leave_out("with a label that the table does not have", lambda place: labels[place] not in labels_to_learn)
    leave_out(
        "whose text has another label in the table",
        lambda place: in_table.get(texts[place], labels[place]) != labels[place],
    )
    leave_out("whose text is in the table already", lambda place: texts[place] in in_table)
    by_text: dict[str, list[int]] = defaultdict(list)
    for place in places:
        by_text[texts[place]].append(place)
    leave_out(
        "with one text under several labels",
        lambda place: len({labels[other] for other in by_text[texts[place]]}) > 1,
    )
    first = {
        text: min(same, key=lambda place: rows[place].drawn != "random") for text, same in by_text.items()
    }
    leave_out("that repeat another row", lambda place: first[texts[place]] != place)
    by_chance = [place for place in places if rows[place].drawn == "random"]
    others = [place for place in places if rows[place].drawn != "random"]
    whole = Table(texts, labels, None if tables[0].groups is None else [""] * len(rows))
    return Feedback(whole.take(by_chance), whole.take(others), [place + 1 for place in by_chance], left_out)


def append_rows(table: Table, rows: Table) -> Table:
    """A table with further rows behind its own."""
    groups = None if table.groups is None else table.groups + (rows.groups or [])
    return Table(table.texts + rows.texts, table.labels + rows.labels, groups)


def _normal(text: str) -> str:
    """The text in normal form; empty where it is not Unicode."""
    try:
        return normalise(text)
    except Invalid:
        return ""


def _spell(label: str, spellings: Mapping[str, str] | None) -> str:
    bare = label.strip()
    return bare if spellings is None else spellings.get(bare.casefold(), bare)
