"""Scheduler of a shared device: chooses the rows that run next, and the requests that are refused.

Earliest deadline first. A request is admitted when a plan exists that keeps its promise and breaks no
earlier one (Clockwork, Gujarati et al. 2020: predict, and refuse on arrival). A free worker never waits for
more rows: at full load the queue has enough of them, and below it waiting only costs time.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from coldframe.scheduling.budget import TokenBudget
from coldframe.scheduling.forecast import ROUNDING_S, Forecast
from coldframe.scheduling.jobs import Job, Outcome, Reason, Refusal, Work
from coldframe.scheduling.limits import Limits
from coldframe.scheduling.pass_times import PassModel
from coldframe.scheduling.passes import Pass
from coldframe.scheduling.plan import Plan
from coldframe.scheduling.stats import Stats

_OWN_TIMES = 3.0  # a long request without a deadline is promised this many times its own time
_ADMITTING, _RUNNING = 1.0, 0.4
"""Safety margins on predicted pass times. Admission uses the larger one, so later requests still fit."""
_SPARED_SHARE = 0.5
"""Share of a request's time without rows, where it accepts an answer by less work: for the wait for a thread,
and for the answers of others.
"""
_KEPT_PASSES = 2  # a round may wait for others' pass that has begun, and for the one before it
_EXPLORED = 32  # one pass in this many has another size than the presumed best


@dataclass(eq=False)
class Run:
    """A pass that a worker has begun."""

    planned: Pass
    began_s: float
    predicted_s: float

    @property
    def ends_s(self) -> float:
        """When it will probably have ended."""
        return self.began_s + self.predicted_s


class Scheduler:
    """The queue of one device. Not safe for threads: its driver holds a lock.

    All moments belong to one clock, and none is before the last.
    """

    def __init__(
        self, limits: Limits, models: Mapping[str, PassModel], mixing: frozenset[str] = frozenset()
    ) -> None:
        """models: pass times of each encoder. mixing: encoders whose passes may hold rows of any length."""
        self.limits = limits
        self._models = models
        self._mixing = mixing
        self._budget = TokenBudget(limits.budget_tokens, limits.max_budget_tokens, limits.pass_objective_s)
        self._plan = Plan()
        self._jobs: set[Job] = set()
        self._rows = self._bytes = 0
        self._runs: list[Run] = []
        self._ended: list[tuple[Job, Outcome]] = []
        self._numbers = count()
        self._counts = Stats()
        self._sized = 0

    def offer(self, work: Work, now_s: float) -> Job | Refusal:
        """Admits work, or says why not and when to come again.

        If a deadline leaves time for the work but not for its later rounds, the work is admitted without
        them. So is work that may be rushed: by its predicted wait it is whole, cut, or not admitted. Then its
        request is answered without rows, and counts as rushed.
        """
        if work.follows is not None:
            return self._follow(work.follows, work, now_s)
        answer = self._consider(work, now_s)
        if isinstance(answer, Refusal) and work.later and (work.may_rush or work.deadline_s != float("inf")):
            answer = self._consider(replace(work, later=()), now_s)
            if isinstance(answer, Job):
                answer.is_cut = work.may_rush
        self._counts.count_offer(answer, work.may_rush)
        return answer

    def next_run(self, now_s: float) -> Run | None:
        """The pass that a free worker begins now; None where nothing waits."""
        while (first := self._plan.take_first()) is not None:
            end_s = now_s + first.predicted_s - ROUNDING_S
            hopeless = [job for job in first.jobs() if end_s > job.work.deadline_s]
            if not hopeless:
                return self._begin(self._resize(first, now_s), now_s)
            self._plan.add(first)
            for job in hopeless:
                self._miss(job)
        return None

    def rest_s(self, now_s: float) -> float | None:
        """How long a free worker without a pass may rest: until new work arrives."""
        return None

    def finish(self, run: Run, now_s: float, failed: bool = False) -> None:
        """Records the end of a pass, and whether its rows have results."""
        self._runs.remove(run)
        one, seconds = run.planned, now_s - run.began_s
        if failed:
            self._fail(one)
            return
        rows = len(one.entries)
        one.model.observe(rows, one.tokens, seconds)
        self._plan.forget()
        self._budget.observe(rows, one.tokens, seconds)
        self._counts.count_pass(rows, one.tokens, run.predicted_s, seconds)
        for job, _ in one.entries:
            job.running -= 1
        for job in one.jobs():
            self._settle(job, now_s)

    def cancel(self, job: Job) -> None:
        """Frees the place of a job without a waiting caller, and of its later rows."""
        self._forget_rest(job)
        if job in self._jobs:
            self._plan.drop(job)
            self._end(job, job.outcome or Outcome.CANCELLED)  # a cancelled job had rows running

    def take_ended(self) -> Sequence[tuple[Job, Outcome]]:
        """Jobs that have ended since the last call, with their outcome."""
        ended, self._ended = self._ended, []
        return ended

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing runs."""
        return not self._jobs and not self._runs

    def stats(self, now_s: float) -> Stats:
        """Counters so far, and the current state."""
        waits = self._plan.forecast(self._free_s(now_s), _RUNNING)
        return self._counts.at(
            queued_jobs=len(self._jobs),
            queued_rows=self._rows,
            queued_bytes=self._bytes,
            running_passes=len(self._runs),
            budget_tokens=self._budget.tokens,
            expected_wait_s=waits.end_s() - now_s if self._plan else 0.0,
        )

    def _consider(self, work: Work, now_s: float) -> Job | Refusal:
        free_s = self._free_s(now_s)
        if full := self._full(work, free_s, now_s):
            return full
        draft = self._draft(work, now_s)
        own_s, kept_s = self._own_s(draft, now_s)
        promised_s = self._promised_s(work, now_s, own_s)
        if work.may_rush:
            draft.work = work = replace(work, deadline_s=promised_s)
            kept_s += _spared_s(promised_s - _came_s(work, now_s), own_s, kept_s)
        draft.promise(promised_s, kept_s)
        if now_s + own_s > draft.due_s + ROUNDING_S:
            return Refusal(*self._too_late(work, free_s, now_s, own_s))
        late_s = self._admit(draft, free_s)
        if late_s > 0:
            return Refusal(Reason.BUSY, late_s)
        self._take(draft)
        return draft

    def _follow(self, before: Job, work: Work, now_s: float) -> Job:
        """Admits expected rows: a request that is partly computed is never refused."""
        self._forget_rest(before)
        if work.may_rush:
            work = replace(work, deadline_s=before.work.deadline_s)
        draft = self._draft(work, now_s)
        draft.promise(before.promised_s, before.promised_s - before.due_s)
        late = self._plan.forecast(self._free_s(now_s), _ADMITTING).late
        self._place(self._plan, draft, late)
        self._take(draft)
        return draft

    def _draft(self, work: Work, now_s: float) -> Job:
        """A job, and one for the rows that will probably follow."""
        draft = self._job(work, now_s)
        if lengths := work.expected:
            share = sum(lengths) / (sum(lengths) + sum(work.lengths))
            rest = Work(work.encoder, lengths, work.deadline_s, work.bulk, round(share * work.size_bytes))
            draft.rest = self._job(rest, now_s, is_expected=True)
            draft.size_bytes -= draft.rest.size_bytes
        return draft

    def _job(self, work: Work, now_s: float, is_expected: bool = False) -> Job:
        return Job(next(self._numbers), work, now_s, work.encoder in self._mixing, is_expected)

    def _own_s(self, draft: Job, now_s: float) -> tuple[float, float]:
        """Time of a job alone, round after round, plus the waits of its rounds for others' passes."""
        own_s = kept_s = 0.0
        later = (self._job(Work(draft.work.encoder, rows), now_s) for rows in draft.work.later)
        for one in (draft, *later):
            alone = Plan()
            self._place_rows(alone, one, None)
            round_s = alone.forecast([now_s] * self.limits.workers, _ADMITTING).end_s() - now_s
            own_s += round_s
            kept_s = max(kept_s, *(planned.predicted_s for planned in alone.passes))
        return own_s, kept_s * _KEPT_PASSES * len(draft.work.later)

    def _take(self, draft: Job) -> None:
        """Counts a job and its later rows among the admitted ones."""
        self._jobs.add(draft)
        for job in filter(None, (draft, draft.rest)):
            self._rows += len(job.work.lengths)
            self._bytes += job.size_bytes

    def _forget_rest(self, job: Job) -> None:
        """Releases the time reserved for rows that would follow a job."""
        rest, job.rest = job.rest, None
        if rest is not None:
            self._plan.drop(rest)
            self._rows -= len(rest.work.lengths)
            self._bytes -= rest.size_bytes

    def _admit(self, job: Job, free_s: Sequence[float]) -> float:
        """Plans a job, in others' passes if possible. Returns the largest delay of a promise that this
        causes.

        Jobs that are late in any case do not count, and no job joins a late pass.
        """
        before = [self._plan.forecast(free_s, _ADMITTING)]
        if before[0].late:  # with less caution, no pass is late
            before.append(self._plan.forecast(free_s, _RUNNING))
        lateness_s = []
        for closed in (before[0].late, None):
            plan = self._plan.copy()
            has_joined = self._place(plan, job, closed)
            delays_s = (plan.forecast(free_s, one.caution).lateness_s(but=one.late) for one in before)
            late_s = next(filter(None, delays_s), 0.0)
            if not late_s:
                self._plan = plan
                return 0.0
            lateness_s.append(late_s)
            if not has_joined:  # the other plan would be equal
                break
        return min(lateness_s)

    def _full(self, work: Work, free_s: Sequence[float], now_s: float) -> Refusal | None:
        rows, size_bytes = len(work.lengths) + len(work.expected), work.size_bytes
        if rows > self.limits.max_queue_rows or size_bytes > self.limits.max_queue_bytes:
            return Refusal(Reason.NEVER, 0.0)
        excess = max(
            (self._rows + rows) / self.limits.max_queue_rows,
            (self._bytes + size_bytes) / self.limits.max_queue_bytes,
        )
        if excess <= 1:
            return None
        end_s = self._plan.forecast(free_s, _ADMITTING).end_s()
        return Refusal(Reason.FULL, (end_s - now_s) * min(1.0, excess - 1))

    def _promised_s(self, work: Work, now_s: float, own_s: float) -> float:
        if work.deadline_s != float("inf"):
            return work.deadline_s
        return _came_s(work, now_s) + max(self.limits.patience_s(work.bulk), _OWN_TIMES * own_s)

    def _too_late(
        self, work: Work, free_s: Sequence[float], now_s: float, own_s: float
    ) -> tuple[Reason, float]:
        """Reason why the work alone is too long: its time is too short, or was spent waiting."""
        if work.deadline_s != float("inf"):
            return Reason.NEVER, own_s
        return Reason.BUSY, self._plan.forecast(free_s, _ADMITTING).end_s() - now_s

    def _place(self, plan: Plan, job: Job, closed: Collection[Pass] | None) -> bool:
        """Plans a job's rows and later rows, in others' passes that are not `closed`; None: all are.

        Returns whether any pass had room.
        """
        has_joined = self._place_rows(plan, job, closed)
        return (job.rest is not None and self._place_rows(plan, job.rest, closed)) or has_joined

    def _place_rows(self, plan: Plan, job: Job, closed: Collection[Pass] | None) -> bool:
        model = self._models[job.work.encoder]
        has_joined = False
        for group, rows in job.groups.items():
            length = group.length or max(1, round(sum(job.work.lengths) / len(job.work.lengths)))
            entries = [(job, row) for row in rows]
            size = model.best_rows(length, self._budget.tokens)
            if closed is not None:
                left = plan.join(entries, group, size, closed)
                has_joined = has_joined or len(left) < len(entries)
                entries = left
            plan.add_rows(entries, group, model, size)
        return has_joined

    def _free_s(self, now_s: float) -> list[float]:
        """When each worker may begin a pass."""
        busy = [max(now_s, run.ends_s) for run in self._runs]
        return busy + [now_s] * (self.limits.workers - len(busy))

    def _resize(self, first: Pass, now_s: float) -> Pass:
        """A pass with as many rows as make it quickest per row, unless that breaks a promise."""
        size, rows = self._size_of(first), len(first.entries)
        if rows == size or first.is_alone:
            return first
        free_s = self._free_s(now_s)
        while size:
            plan, other = self._resized(first, size)
            if len(other.entries) == rows:
                break
            if self._may_be(first, other, plan, now_s, free_s):
                self._plan = plan
                return other
            size = size // 2 if size // 2 > rows else 0
        return first

    def _may_be(self, first: Pass, other: Pass, plan: Plan, now_s: float, free_s: Sequence[float]) -> bool:
        """Whether `other` may run in place of `first`, followed by `plan`, without making a job late."""
        after = Forecast([other, *plan.passes], free_s, _RUNNING)
        if not after.late:
            return True
        if now_s + other.predicted_s > first.due_s >= now_s + first.predicted_s:
            return False
        before = Forecast([first, *self._plan.passes], free_s, _RUNNING)
        return after.late_jobs() <= before.late_jobs()

    def _resized(self, first: Pass, size: int) -> tuple[Plan, Pass]:
        """The plan and the pass, if the pass has up to `size` rows."""
        plan = self._plan.copy()
        if len(first.entries) < size:
            return plan, plan.fill(first, size)
        plan.add(first.with_entries(first.entries[size:]))
        return plan, first.with_entries(first.entries[:size])

    def _size_of(self, one: Pass) -> int:
        """The best size, and from time to time another one, since measurements may be out of date."""
        length, budget = max(1, one.tokens // len(one.entries)), self._budget.tokens
        self._sized += 1
        if self._sized % _EXPLORED:
            return one.model.best_rows(length, budget)
        powers = max(1, budget // length).bit_length()
        return 1 << (self._sized // _EXPLORED % powers)

    def _begin(self, one: Pass, now_s: float) -> Run:
        run = Run(one, now_s, one.predicted_s)
        self._runs.append(run)
        for job, _ in one.entries:
            job.waiting -= 1
            job.running += 1
            if not job.was_begun:
                job.was_begun = True
                self._counts.queue_wait_s += now_s - job.admitted_s
        return run

    def _fail(self, one: Pass) -> None:
        """Fails the job of a pass; if several shared it, each is computed again on its own."""
        jobs = [job for job in one.jobs() if job.outcome is None]
        for job, _ in one.entries:
            job.running -= 1
        for job in one.jobs():
            if job.outcome is Outcome.MISSED:
                self._settle(job, 0.0)
        if len(list(one.jobs())) == 1:
            for job in jobs:
                self._plan.drop(job)
                self._end(job, Outcome.FAILED)
            return
        for job in jobs:
            job.alone = True
            rows = [row for owner, row in one.entries if owner is job]
            job.waiting += len(rows)
            self._plan.add_rows([(job, row) for row in rows], one.group, one.model, len(rows))

    def _miss(self, job: Job) -> None:
        """Gives up rows that would be late; running rows still count."""
        self._plan.drop(job)
        job.waiting = 0
        job.outcome = Outcome.MISSED
        self._settle(job, 0.0)

    def _settle(self, job: Job, now_s: float) -> None:
        """Ends a job without waiting or running rows, unless it has ended before."""
        if job in self._jobs and not job.waiting and not job.running:
            is_late = job.outcome is None and now_s > job.promised_s + ROUNDING_S
            self._counts.late += is_late
            self._end(job, job.outcome or Outcome.DONE)

    def _end(self, job: Job, outcome: Outcome) -> None:
        job.outcome = outcome
        if outcome is not Outcome.DONE:
            self._forget_rest(job)
        self._jobs.remove(job)
        self._rows -= len(job.work.lengths)
        self._bytes -= job.size_bytes
        self._counts.count_outcome(outcome)
        self._ended.append((job, outcome))


def _came_s(work: Work, now_s: float) -> float:
    return now_s if work.arrived_s is None else work.arrived_s


def _spared_s(limit_s: float, own_s: float, kept_s: float) -> float:
    """Time before the promise that work which may be rushed leaves unused.

    Less where it needs the time itself: a device without other work computes what it can.

    limit_s: time from arrival to promise. own_s: time of the work alone. kept_s: waits between its rounds.
    """
    needed_s = max(_OWN_TIMES * own_s, own_s + kept_s)
    return max(0.0, min(_SPARED_SHARE * limit_s, limit_s - needed_s))
