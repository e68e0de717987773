"""Journal of a run: the finished work, in a file that survives its process."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
from msgspec import Struct

from coldframe.errors import ColdframeError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS run (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS child (
    number INTEGER PRIMARY KEY, items INTEGER NOT NULL, ended BLOB NOT NULL, succeeded INTEGER NOT NULL
);
"""


class OtherRun(ColdframeError):
    """The file holds a run with another input, so nothing of it can be used."""


class Ended(Struct, frozen=True):
    """A child that has ended. started_s, stopped_s: Unix times. error: empty for one that succeeded.

    input: None where no result needs it.
    """

    number: int
    items: int
    started_s: float
    stopped_s: float
    input: Any = None
    output: Any = None
    error: str = ""
    cause: str = ""


class Journal:
    """The children of one run that have ended, by number. For one thread.

    What `add` was given is in the file when it returns, so that a killed process loses only what it was at.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path)
        self._db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;" + _SCHEMA)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._db.close()

    def belongs_to(self, identity: dict[str, Any]) -> None:
        """Remembers what the run is of, or holds it against what was remembered. Raises OtherRun."""
        own = msgspec.json.encode(identity, order="sorted")
        with self._db:
            self._db.execute("INSERT OR IGNORE INTO run VALUES ('identity', ?)", (own,))
        (recorded,) = self._db.execute("SELECT value FROM run WHERE key = 'identity'").fetchone()
        if recorded != own:
            before = msgspec.json.decode(recorded)
            changed = sorted(name for name in {*before, *identity} if before.get(name) != identity.get(name))
            raise OtherRun(
                f"This run was started with another {', '.join(changed)}."
                f" Give it another --name, or delete {self._path} to start it anew."
            )

    def add(self, ended: Ended) -> None:
        """Keeps the end of a child; a later one of the same number takes its place."""
        row = (ended.number, ended.items, msgspec.json.encode(ended), not ended.error)
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO child VALUES (?, ?, ?, ?)", row)

    def succeeded(self) -> set[int]:
        """Numbers of the children that need not run again."""
        return {number for (number,) in self._db.execute("SELECT number FROM child WHERE succeeded")}

    def items(self, succeeded: bool) -> int:
        """Number of items in the children that succeeded, or in the children that failed."""
        query = "SELECT coalesce(sum(items), 0) FROM child WHERE succeeded = ?"
        return int(self._db.execute(query, (succeeded,)).fetchone()[0])

    def ends(self, succeeded: bool) -> Iterator[Ended]:
        """Children that succeeded, or children that failed, by number."""
        rows = self._db.execute("SELECT ended FROM child WHERE succeeded = ? ORDER BY number", (succeeded,))
        decoder = msgspec.json.Decoder(Ended)
        for (row,) in rows:
            yield decoder.decode(row)
