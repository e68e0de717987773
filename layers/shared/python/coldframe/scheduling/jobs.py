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
    """Rows that may share a pass: of one encoder and, where a pass pads nothing, of one length; else 0.

    is_expected: they are not there yet; their time is kept for them.
    """

    encoder: str
    length: int
    is_expected: bool = False


@dataclass(frozen=True)
class Work:
    """What one request asks of one encoder.

    lengths: tokens of each row. deadline_s: the moment after which nobody waits, or infinity.
    size_bytes: what the rows and their results take in memory, later ones included.
    arrived_s: when the request came in, from when on it is waited for; None: when it is offered.
    later: tokens of rows that will probably follow in further rounds, each after the one before it.
    follows: the job of the same request that expected these rows. It was promised for them, too.
    """

    encoder: str
    lengths: Sequence[int]
    deadline_s: float = float("inf")
    bulk: bool = False
    size_bytes: int = 0
    arrived_s: float | None = None
    later: Sequence[Sequence[int]] = ()
    follows: "Job | None" = None

    @property
    def expected(self) -> list[int]:
        """Tokens of all rows that will probably follow."""
        return [length for lengths in self.later for length in lengths]


Order = tuple[float, bool, int]
"""When work is due, whether it is in no hurry, its number: what comes first is the smaller one."""


class Job:
    """Admitted work, and how far it is.

    promised_s: the moment that its request is promised for; the deadline where it has one.
    due_s: when its rows are planned to end: sooner, where each round to follow may wait for others' pass.
    groups: its rows by what they may share a pass with.
    rest: rows that will probably follow, as a job that no pass begins; None: none, or no longer.
    waiting, running: rows that no pass has begun, and rows in passes that have not ended.
    alone: its rows share no pass, since one that they shared has failed.
    """

    def __init__(
        self, number: int, work: Work, now_s: float, is_mixing: bool = False, is_expected: bool = False
    ) -> None:
        """is_mixing: rows of any length may share a pass. is_expected: its rows are not there yet."""
        self.number = number
        self.work = work
        self.admitted_s = now_s
        self.groups = _groups(work, is_mixing, is_expected)
        self.rest: Job | None = None
        self.size_bytes = work.size_bytes
        self.waiting = len(work.lengths)
        self.running = 0
        self.alone = False
        self.was_begun = False
        self.outcome: Outcome | None = None
        self.promise(now_s)

    def promise(self, promised_s: float, kept_s: float = 0.0) -> None:
        """Sets when it is due, and so its place: of those due at once, the urgent, then the first one.

        kept_s: of the time promised, for rounds that wait for a pass of others.
        """
        self.promised_s = promised_s
        self.due_s = promised_s - kept_s
        self.order: Order = (self.due_s, self.work.bulk, self.number)
        if self.rest is not None:
            self.rest.promise(promised_s, kept_s)


def _groups(work: Work, is_mixing: bool, is_expected: bool) -> dict[Group, list[int]]:
    """Rows that may share a pass, short ones first: with too little time, most texts have theirs."""
    groups: dict[Group, list[int]] = {}
    for row in sorted(range(len(work.lengths)), key=work.lengths.__getitem__):
        length = 0 if is_mixing else work.lengths[row]
        groups.setdefault(Group(work.encoder, length, is_expected), []).append(row)
    return groups
