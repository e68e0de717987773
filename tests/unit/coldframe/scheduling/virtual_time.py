"""A device in virtual time: passes take what a cost model says, and requests come when they are told to."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from coldframe.scheduling.jobs import Job, Outcome, Refusal, Work
from coldframe.scheduling.limits import Limits
from coldframe.scheduling.pass_times import PassModel
from coldframe.scheduling.scheduler import Run, Scheduler

ENCODER = "encoder"
THINKING_S = 0.001
"""Between two rounds of a request."""


class KnownTimes:
    """Predictions that are right: `fixed_s` for a pass and `token_s` for each token. Learns nothing."""

    pace = margin = 1.0

    def __init__(self, fixed_s: float, token_s: float, largest: int = 64) -> None:
        self.fixed_s = fixed_s
        self.token_s = token_s
        self.largest = largest if fixed_s else 1

    def shape_s(self, rows: int, tokens: int) -> float:
        return self.fixed_s + self.token_s * tokens

    def best_rows(self, length: int, budget_tokens: int) -> int:
        return max(1, min(self.largest, budget_tokens // length))

    def observe(self, rows: int, tokens: int, seconds: float) -> None:
        pass


@dataclass(frozen=True)
class Arrival:
    """One request. within_s: its deadline, from when it comes; cancel_s: when its caller hangs up.

    later: rows of further rounds, of which the first `rounds` are needed: an answer may be settled early.
    may_rush: it accepts an answer by less work.
    """

    at_s: float
    lengths: Sequence[int]
    within_s: float = float("inf")
    bulk: bool = False
    cancel_s: float = float("inf")
    size_bytes: int = 100
    later: Sequence[Sequence[int]] = ()
    rounds: int = 0
    may_rush: bool = False


@dataclass
class Fate:
    """What became of a request. ends: every outcome of its first rows, of which there may be one.

    half_way: the refusal of a later round. whole_s: when its last round had ended.
    """

    arrival: Arrival
    admitted: bool
    refusal: Refusal | None = None
    due_s: float = 0.0
    begun_s: float | None = None
    ends: list[tuple[float, Outcome]] = field(default_factory=list)
    half_way: Refusal | None = None
    whole_s: float | None = None
    done: int = 0
    is_cut: bool = False

    @property
    def end_s(self) -> float:
        return self.ends[0][0]

    @property
    def outcome(self) -> Outcome | None:
        return self.ends[0][1] if self.ends else None


class VirtualDevice:
    """Plays requests through a scheduler. After each step of it, `check` may look at the scheduler."""

    def __init__(
        self,
        limits: Limits,
        model: PassModel,
        true_s: Callable[[int, int], float] | None = None,
        fails: Callable[[Run], bool] = lambda run: False,
        follows: bool = True,
    ) -> None:
        """true_s: what a pass takes, by rows and tokens; without, what the model says.

        follows: False where each round is work of its own, as if nobody had expected it.
        """
        self.scheduler = Scheduler(limits, {ENCODER: model})
        self.limits = limits
        self.true_s = true_s or model.shape_s
        self.fails = fails
        self.follows = follows
        self.now_s = 0.0
        self.runs: list[Run] = []
        self.idle_while_waiting = 0
        self._fates: dict[Job, Fate] = {}

    def play(
        self, arrivals: Sequence[Arrival], check: Callable[["VirtualDevice"], None] = lambda device: None
    ) -> list[Fate]:
        """The fate of each request, in the order given."""
        numbers = count()
        events: list[tuple[float, int, int, Callable[[], None]]] = []
        fates: dict[int, Fate] = {}
        running = 0

        def push(at_s: float, rank: int, act: Callable[[], None]) -> None:
            heapq.heappush(events, (at_s, rank, next(numbers), act))

        def arrive(index: int, arrival: Arrival) -> None:
            work = Work(
                ENCODER,
                arrival.lengths,
                self.now_s + arrival.within_s,
                arrival.bulk,
                arrival.size_bytes,
                later=arrival.later if self.follows else (),
                may_rush=arrival.may_rush,
            )
            found = self.scheduler.offer(work, self.now_s)
            fates[index] = fate = Fate(arrival, isinstance(found, Job))
            if isinstance(found, Refusal):
                fate.refusal = found
                return
            fate.due_s, fate.is_cut = found.due_s, found.is_cut
            self._fates[found] = fate
            if arrival.cancel_s < float("inf"):
                push(self.now_s + arrival.cancel_s, 0, lambda: self.scheduler.cancel(found))

        def finish(run: Run) -> None:
            nonlocal running
            running -= 1
            self.scheduler.finish(run, self.now_s, failed=self.fails(run))

        def go_on(job: Job, fate: Fate) -> None:
            """The next round of a request, some time after the one before; or its end."""
            fate.done += 1
            if fate.is_cut or fate.done > fate.arrival.rounds:
                fate.whole_s = self.now_s
                self.scheduler.cancel(job)
                return
            later = fate.arrival.later
            work = Work(
                ENCODER,
                later[fate.done - 1],
                size_bytes=fate.arrival.size_bytes,
                may_rush=fate.arrival.may_rush,
            )
            if self.follows:
                work = replace(work, later=later[fate.done :], follows=job)
            found = self.scheduler.offer(work, self.now_s)
            if isinstance(found, Refusal):
                fate.half_way = found
            else:
                later_rounds[found] = fate

        later_rounds: dict[Job, Fate] = {}
        for index, arrival in enumerate(arrivals):
            push(arrival.at_s, 1, lambda index=index, arrival=arrival: arrive(index, arrival))  # type: ignore[misc]
        while events:
            self.now_s, _, _, act = heapq.heappop(events)
            act()
            while running < self.limits.workers and (run := self.scheduler.next_run(self.now_s)) is not None:
                running += 1
                self.runs.append(run)
                for job in run.planned.jobs():
                    fate = self._fates.get(job) or later_rounds[job]
                    fate.begun_s = self.now_s if fate.begun_s is None else fate.begun_s
                one = run.planned
                taken_s = self.true_s(len(one.entries), one.tokens)
                push(self.now_s + taken_s, 0, lambda run=run: finish(run))  # type: ignore[misc]
            if running < self.limits.workers and self.scheduler.stats(self.now_s).expected_wait_s > 0:
                self.idle_while_waiting += 1
            for job, outcome in self.scheduler.take_ended():
                if job in self._fates:
                    self._fates[job].ends.append((self.now_s, outcome))
                fate = self._fates.get(job) or later_rounds[job]
                if outcome is Outcome.DONE and fate.arrival.later:
                    push(self.now_s + THINKING_S, 1, lambda job=job, fate=fate: go_on(job, fate))  # type: ignore[misc]
            check(self)
        return [fates[index] for index in range(len(arrivals))]
