"""Rows of feedback, as training and people read them: texts in clear, with their right labels."""

from typing import Literal, NamedTuple

from msgspec import Struct

from coldframe.feedback.table import FeedbackTable
from coldframe.feedback.texts import TextOpener, UnreadableText


class FeedbackRow(Struct):
    """A text and its right label. The other fields may be missing in a file that somebody else wrote.

    drawn: `random` where chance chose the answer to be labelled, else `complaint`. answered_s: since 1970.
    id: of the row, not the answer's. model: name of the model.
    """

    text: str
    label: str
    drawn: Literal["random", "complaint"] = "complaint"
    model: str = ""
    version: str = ""
    head: str = ""
    answered_s: int = 0
    id: str = ""


class FeedbackRows(NamedTuple):
    """Rows in the order of their answers. unreadable: texts that no key opens."""

    rows: list[FeedbackRow]
    unreadable: int


def read_rows(table: FeedbackTable, opener: TextOpener) -> FeedbackRows:
    """All rows of a table that have not expired. Raises TableFails."""
    rows, unreadable = [], 0
    for stored in table.texts():
        try:
            text = opener.open(stored.sealed, stored.nonce)
        except UnreadableText:
            unreadable += 1
            continue
        rows.append(
            FeedbackRow(
                text,
                stored.label,
                "random" if stored.is_random else "complaint",
                stored.model,
                stored.version,
                stored.head,
                stored.answered_s,
                stored.nonce.hex(),
            )
        )
    return FeedbackRows(sorted(rows, key=lambda row: (row.answered_s, row.id)), unreadable)
