"""Jobs: rows that a request wants computed, the promise made for them, and their outcome."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple


class Outcome(Enum):
    """How an admitted job ended. Each ends in exactly one way.

    MISSED: rows are left that could no longer be computed before the deadline.
    """

    DONE = auto()
    MISSED = auto()
    CANCELLED = auto()
    FAILED = auto()


class Reason(Enum):
    """Reason why a job is refused.

    NEVER: its time is too short even without other work. BUSY: other work leaves too little time.
    FULL: the queue holds its most rows or bytes.
    """

    NEVER = auto()
    BUSY = auto()
    FULL = auto()


class Refusal(NamedTuple):
    """No admission. retry_after_s: time until the job would be admitted if no other work came."""

    reason: Reason
    retry_after_s: float


class Group(NamedTuple):
    """Rows that may share a pass: rows of one encoder and, where a pass has no padding, of one length; else
    0.

    is_expected: the rows will come in a later round; time is reserved for them.
    """

    encoder: str
    length: int
    is_expected: bool = False


@dataclass(frozen=True)
class Work:
    """Rows that one request sends to one encoder.

    lengths: tokens of each row. deadline_s: the moment after which the caller no longer waits, or infinity.
    size_bytes: memory of the rows and their results, with later rows.
    arrived_s: arrival of the request, from which its wait counts; None: the moment of the offer.
    later: tokens of rows that will probably follow in further rounds, one round after another.
    follows: the earlier job of the request whose promise covers these rows.
    may_rush: the request accepts an answer without later rows, or without any. Then its promise leaves time
    for such an answer, and a moment after which its rows are given up.
    """

    encoder: str
    lengths: Sequence[int]
    deadline_s: float = float("inf")
    bulk: bool = False
    size_bytes: int = 0
    arrived_s: float | None = None
    later: Sequence[Sequence[int]] = ()
    follows: "Job | None" = None
    may_rush: bool = False

    @property
    def expected(self) -> list[int]:
        """Tokens of all rows that will probably follow."""
        return [length for lengths in self.later for length in lengths]


Order = tuple[float, bool, int]
"""When work is due, whether it is in no hurry, its number: the smallest comes first."""


class Job:
    """Admitted work, and its progress.

    promised_s: the moment promised to its request; the deadline where it has one.
    due_s: when its rows are planned to end: earlier than promised, if later rounds may wait for others'
    passes.
    groups: its rows by the group that they may share a pass with.
    rest: rows that will probably follow, as a job that no pass begins; None: none, or no longer.
    waiting, running: rows that no pass has begun, and rows in passes that have not ended.
    alone: its rows share no pass, since a shared pass of theirs has failed.
    is_cut: it was admitted without its later rows, which its request gives up.
    """

    def __init__(
        self, number: int, work: Work, now_s: float, is_mixing: bool = False, is_expected: bool = False
    ) -> None:
        """is_mixing: rows of any length may share a pass. is_expected: its rows come in a later round."""
        self.number = number
        self.work = work
        self.admitted_s = now_s
        self.groups = _groups(work, is_mixing, is_expected)
        self.rest: Job | None = None
        self.size_bytes = work.size_bytes
        self.waiting = len(work.lengths)
        self.running = 0
        self.alone = self.is_cut = False
        self.was_begun = False
        self.outcome: Outcome | None = None
        self.promise(now_s)

    def promise(self, promised_s: float, kept_s: float = 0.0) -> None:
        """Sets when it is due, and thereby its order: by due time, then urgent work first, then by number.

        kept_s: time reserved before the promise, for rounds that wait for others' passes.
        """
        self.promised_s = promised_s
        self.due_s = promised_s - kept_s
        self.order: Order = (self.due_s, self.work.bulk, self.number)
        if self.rest is not None:
            self.rest.promise(promised_s, kept_s)


def _groups(work: Work, is_mixing: bool, is_expected: bool) -> dict[Group, list[int]]:
    """Rows that may share a pass, short ones first: with too little time, most texts are computed."""
    groups: dict[Group, list[int]] = {}
    for row in sorted(range(len(work.lengths)), key=work.lengths.__getitem__):
        length = 0 if is_mixing else work.lengths[row]
        groups.setdefault(Group(work.encoder, length, is_expected), []).append(row)
    return groups
