"""Raw results: JSON lines, first what the run was, then one line per sample.

Summaries are made later, from these files alone. A name that ends in `.gz` is compressed.
"""

import gzip
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Struct

from coldframe.errors import ColdframeError

WARM, DROPPED = "warm", "dropped"
"""States of the page cache when a sample was taken."""


class RawFileUnreadable(ColdframeError):
    """A raw file is not what this version of the benchmark writes."""


class Run(Struct, frozen=True, tag="run"):
    """Subject of a run: benchmark, machine, and state of the code.

    bundle: version of the model. load_average: load of the machine when the run began. options: options of
    the command.
    """

    benchmark: str
    started: str
    commit: str
    changed: bool
    bundle: str
    cpu: str
    cpu_flags: list[str]
    cores: int
    memory_mb: int
    system: str
    python: str
    versions: dict[str, str]
    load_average: float
    seed: int
    options: dict[str, Any]


class Cold(Struct, frozen=True, tag="cold"):
    """One fresh process to its first answer. Milliseconds from the call that spawned it.

    traced: the process was instrumented, so that `stages`, `imports` (own time by package) and
    `calls` are there; only untraced samples are quoted as totals.
    read_bytes: fetched from storage by then; None where the system does not say.
    """

    series: str
    round: int
    page_cache: str
    traced: bool
    total_ms: float
    stages_ms: dict[str, float]
    imports_ms: dict[str, float] = {}
    calls: dict[str, int] = {}
    by: str = ""
    read_bytes: int | None = None

    @property
    def is_warm(self) -> bool:
        """Whether its files were in the page cache."""
        return self.page_cache == WARM


class Answer(Struct, frozen=True, tag="answer"):
    """One request of an open loop. Seconds since the first one was due.

    latency_ms: from when it was due, whenever it was sent. status: 0 where no answer came, with `error`.
    """

    target: str
    offered_rps: float
    due_s: float
    sent_s: float
    latency_ms: float
    status: int
    error: str = ""

    def rounded(self) -> "Answer":
        """To a microsecond: more digits are noise, and most of a raw file."""
        moments = round(self.due_s, 6), round(self.sent_s, 6), round(self.latency_ms, 3)
        return Answer(self.target, self.offered_rps, *moments, self.status, self.error)


class Timing(Struct, frozen=True, tag="timing"):
    """One timed call of a thing with a name, under named conditions."""

    name: str
    conditions: dict[str, int | str]
    ms: float

    def was_under(self, **conditions: int | str) -> bool:
        """Whether it was taken under these conditions; others may have held, too."""
        return conditions.items() <= self.conditions.items()


class Fact(Struct, frozen=True, tag="fact"):
    """A number that is not a time, or words where there is none: sizes, verdicts, reasons."""

    name: str
    subject: str
    value: float | None = None
    text: str = ""


Sample: TypeAlias = Cold | Answer | Timing | Fact
Kind = TypeVar("Kind", bound=Struct)

_DECODER = msgspec.json.Decoder(Run | Cold | Answer | Timing | Fact)


class RawFile(AbstractContextManager["RawFile"]):
    """A raw file being written: what `write` was given is there when it returns."""

    def __init__(self, path: Path, run: Run) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = _open(path, "wb")
        self.write(run)

    def write(self, *records: Run | Sample) -> None:
        """Appends a line for each. Those written together are compressed together: to half."""
        self._file.writelines(msgspec.json.encode(record) + b"\n" for record in records)
        self._file.flush()

    def __exit__(self, *exception: object) -> None:
        self._file.close()


class Results:
    """A raw file that was read."""

    def __init__(self, path: Path, run: Run, samples: list[Sample]) -> None:
        self.path = path
        self.run = run
        self.samples = samples

    def of(self, kind: type[Kind]) -> list[Kind]:
        """The samples of one kind, in the order taken."""
        return cast(list[Kind], self._by_kind.get(cast(type[Sample], kind), []))

    @cached_property
    def _by_kind(self) -> dict[type[Sample], list[Sample]]:
        groups: dict[type[Sample], list[Sample]] = defaultdict(list)
        for sample in self.samples:
            groups[type(sample)].append(sample)
        return groups

    @cached_property
    def answers(self) -> Mapping[tuple[str, float], Sequence[Answer]]:
        """Answers of each target at each rate, in the order due."""
        groups: dict[tuple[str, float], list[Answer]] = defaultdict(list)
        for answer in self.of(Answer):
            groups[answer.target, answer.offered_rps].append(answer)
        return groups

    def timings_ms(self, name: str, **conditions: int | str) -> list[float]:
        """Milliseconds of everything timed under a name and these conditions, in the order taken."""
        return [
            timing.ms for timing in self.of(Timing) if timing.name == name and timing.was_under(**conditions)
        ]

    def totals_ms(self, series: str) -> list[float]:
        """Milliseconds to the first answer of a series: untraced processes with a warm page cache."""
        return [
            cold.total_ms
            for cold in self.of(Cold)
            if cold.series == series and cold.is_warm and not cold.traced
        ]

    def facts(self, name: str, subject: str) -> list[float]:
        """Values of a fact about a subject; facts that are words are left out."""
        values = (fact.value for fact in self.of(Fact) if (fact.name, fact.subject) == (name, subject))
        return [value for value in values if value is not None]


def read_results(path: Path) -> Results:
    """Raises RawFileUnreadable for a line that is not a record; a line cut off at the end is left out."""
    try:
        run, *samples = _records(path)
    except (OSError, ValueError) as exc:
        raise RawFileUnreadable(f"{path} cannot be read: {exc}. Run the benchmark again.") from exc
    if not isinstance(run, Run) or any(isinstance(sample, Run) for sample in samples):
        raise RawFileUnreadable(f"{path} does not begin with one line that says what was run.")
    return Results(path, run, samples)


def _records(path: Path) -> Iterator[Any]:
    with _open(path, "rb") as file, suppress(EOFError):  # a compressed file that was cut off
        for line in file:
            if line.endswith(b"\n"):
                yield _DECODER.decode(line)


def _open(path: Path, mode: str) -> IO[bytes]:
    # No time stamp in a compressed file: the same lines are the same bytes.
    if path.suffix == ".gz":
        return gzip.GzipFile(path, mode, mtime=0)  # type: ignore[return-value]
    return path.open(mode)
