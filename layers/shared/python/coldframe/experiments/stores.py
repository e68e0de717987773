"""Stores of an experiment: its document, environments' counts and labels, in a folder or a table.

Each write is conditional on a revision or can be repeated without effect, so nothing is lost or counted
twice.
"""

import fcntl
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from coldframe.errors import ColdframeError
from coldframe.timing import Clock, Deadline

CURRENT = "experiment"
"""Partition of the document, beside one partition for each run."""
DOCUMENT = "document"
JUDGE = "judge"
COUNTS = "counts/"
LABEL = "label/"
KEPT_S = 90 * 86_400
"""Time for which an item is kept after its last write."""


class StoreFails(ColdframeError):
    """The store failed, and may work later. The text names the failure alone."""


class Item(Struct, frozen=True):
    """A stored JSON value. revision: grows with each write."""

    name: str
    value: bytes
    revision: int


class Label(Struct, frozen=True):
    """One label's part in the counts. lineup: whose counts. nonce: of the labelled answer.

    counts: what this label adds, by name.
    """

    lineup: str
    nonce: str
    counts: dict[str, int]


class Store(Protocol):
    """Items by partition and name. Every method raises StoreFails; safe for threads.

    Expired items are not returned, even while they exist.
    """

    def set_up(self) -> None:
        """Creates what the first call needs, without a call."""

    def close(self) -> None:
        """Closes connections and forgets credentials."""

    def read(self, partition: str, name: str, deadline: Deadline) -> Item | None:
        """One item."""

    def write(self, partition: str, item: Item, deadline: Deadline, replaces: int | None = None) -> bool:
        """Writes an item. False, without a change, where the condition does not hold.

        replaces: revision that the item must have now, 0 for none; None: any smaller one than the item's.
        """

    def items(self, partition: str, prefix: str, deadline: Deadline) -> list[Item]:
        """Items whose names begin with `prefix`."""

    def add_label(self, partition: str, label: Label, deadline: Deadline) -> bool:
        """Adds the label's counts once. False if this answer's label was counted before."""

    def remove_label(self, partition: str, nonce: str, deadline: Deadline) -> None:
        """Takes back what a label added, if it was counted."""

    def label_counts(self, partition: str, lineup: str, deadline: Deadline) -> dict[str, int]:
        """Sums of the labels' counts."""


class _Stored(Struct, frozen=True):
    """File of an item."""

    revision: int
    expires_at_s: int
    value: msgspec.Raw


_STORED = msgspec.json.Decoder(_Stored)
_LABELS = msgspec.json.Decoder(Label)


class FolderStore:
    """A folder of JSON files, for servers on one machine. A lock makes conditional writes safe."""

    def __init__(self, folder: Path, now: Clock = time.time) -> None:
        """now: seconds since 1970."""
        self._folder = folder
        self._now = now

    def set_up(self) -> None:
        """Does nothing: a folder needs no connection."""

    def close(self) -> None:
        """Does nothing: no file stays open."""

    def read(self, partition: str, name: str, deadline: Deadline) -> Item | None:
        """See `Store`."""
        with _failures():
            return self._read(self._path(partition, name), name)

    def write(self, partition: str, item: Item, deadline: Deadline, replaces: int | None = None) -> bool:
        """See `Store`."""
        path = self._path(partition, item.name)
        with _failures(), self._locked(partition):
            present = self._read(path, item.name)
            revision = present.revision if present else 0
            if revision >= item.revision if replaces is None else revision != replaces:
                return False
            expires_s = int(self._now()) + KEPT_S
            stored = _Stored(item.revision, expires_s, msgspec.Raw(item.value))
            _replace(path, msgspec.json.encode(stored))
            return True

    def items(self, partition: str, prefix: str, deadline: Deadline) -> list[Item]:
        """See `Store`."""
        with _failures():
            paths = sorted((self._folder / partition).glob(f"{_file_name(prefix)}*.json"))
            names = [path.stem.replace("~", "/") for path in paths]
            read = [self._read(path, name) for path, name in zip(paths, names, strict=True)]
            return [item for item in read if item is not None]

    def add_label(self, partition: str, label: Label, deadline: Deadline) -> bool:
        """See `Store`."""
        item = Item(f"{LABEL}{label.nonce}", msgspec.json.encode(label), 1)
        return self.write(partition, item, deadline, replaces=0)

    def remove_label(self, partition: str, nonce: str, deadline: Deadline) -> None:
        """See `Store`."""
        with _failures(), self._locked(partition):
            self._path(partition, f"{LABEL}{nonce}").unlink(missing_ok=True)

    def label_counts(self, partition: str, lineup: str, deadline: Deadline) -> dict[str, int]:
        """See `Store`."""
        total: Counter[str] = Counter()
        for item in self.items(partition, LABEL, deadline):
            label = _LABELS.decode(item.value)
            if label.lineup == lineup:
                total.update(label.counts)
        return dict(total)

    def _read(self, path: Path, name: str) -> Item | None:
        try:
            stored = _STORED.decode(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
            return None
        return Item(name, bytes(stored.value), stored.revision) if stored.expires_at_s > self._now() else None

    def _path(self, partition: str, name: str) -> Path:
        return self._folder / partition / f"{_file_name(name)}.json"

    @contextmanager
    def _locked(self, partition: str) -> Iterator[None]:
        folder = self._folder / partition
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def add_up(counts: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Sums by name."""
    return dict(Counter(counts) + Counter(more))


def _file_name(name: str) -> str:
    return name.replace("/", "~")


def _replace(path: Path, content: bytes) -> None:
    """Writes a file whole, or not at all."""
    temporary = path.with_suffix(f".{os.getpid()}.part")
    temporary.write_bytes(content)
    temporary.replace(path)


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise StoreFails(f"The folder of the experiment: {type(exc).__name__}") from exc
