"""What a request wants computed, what it was promised, and how that ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple


class Outcome(Enum):
    """How an admitted job ended. Each ends in exactly one way.

    MISSED: rows are left that could not be computed before the deadline any more.
    """

    DONE = auto()
    MISSED = auto()
    CANCELLED = auto()
    FAILED = auto()


class Reason(Enum):
    """Why a job is refused.

    NEVER: it cannot be done in its time, whatever waits. BUSY: it could, if less were waiting.
    FULL: as many rows or bytes wait as may.
    """

    NEVER = auto()
    BUSY = auto()
    FULL = auto()


class Refusal(NamedTuple):
    """No admission. retry_after_s: when the same job would be admitted if nothing else came."""

    reason: Reason
    retry_after_s: float


class Group(NamedTuple):
    """Rows that may share a pass: of one encoder and, where a pass pads nothing, of one length; else 0."""

    encoder: str
    length: int


@dataclass(frozen=True)
class Work:
    """What one request asks of one encoder.

    lengths: tokens of each row. deadline_s: the moment after which nobody waits, or infinity.
    size_bytes: what the rows and their results take in memory.
    arrived_s: when the request came in, from when on it is waited for; None: when it is offered.
    """

    encoder: str
    lengths: Sequence[int]
    deadline_s: float = float("inf")
    bulk: bool = False
    size_bytes: int = 0
    arrived_s: float | None = None


Order = tuple[float, bool, int]
"""When work is due, whether it is in no hurry, its number: what comes first is the smaller one."""


class Job:
    """Admitted work, and how far it is.

    due_s: the moment it is promised for; the deadline where it has one.
    waiting, running: rows that no pass has begun, and rows in passes that have not ended.
    alone: its rows share no pass, since one that they shared has failed.
    """

    def __init__(self, number: int, work: Work, now_s: float) -> None:
        self.number = number
        self.work = work
        self.admitted_s = now_s
        self.waiting = len(work.lengths)
        self.running = 0
        self.alone = False
        self.was_begun = False
        self.outcome: Outcome | None = None
        self.promise(now_s)

    def promise(self, due_s: float) -> None:
        """Sets when it is due, and so its place: of those due at once, the urgent, then the first one."""
        self.due_s = due_s
        self.order: Order = (due_s, self.work.bulk, self.number)
