"""Policies beside the scheduler, behind the same driver: first come, first served, without refusals."""

from collections import deque
from collections.abc import Sequence
from itertools import count, groupby

from coldframe.scheduling.jobs import Group, Job, Outcome, Reason, Refusal, Work
from coldframe.scheduling.limits import Limits
from coldframe.scheduling.pass_times import PassTimes
from coldframe.scheduling.passes import Entry, Pass
from coldframe.scheduling.scheduler import Run
from coldframe.scheduling.stats import Stats


class FixedDelay:
    """A batch is begun when it is full, or when its oldest row has waited long enough: Triton's way.

    Rows of a batch run in passes of one length, as everywhere here, so that nothing is padded. With batches
    of one row and no delay it is a plain queue. Bounded by rows alone.
    https://docs.nvidia.com/deeplearning/triton-inference-server/user-guide/docs/user_guide/batcher.html
    """

    def __init__(self, limits: Limits, delay_s: float, batch_rows: int) -> None:
        self.limits = limits
        self._delay_s = delay_s
        self._batch_rows = batch_rows
        self._waiting: deque[Entry] = deque()
        self._ready: deque[Pass] = deque()
        self._left: dict[Job, int] = {}
        self._ended: list[tuple[Job, Outcome]] = []
        self._numbers = count()
        self._times = PassTimes()
        self._runs = 0

    @property
    def is_idle(self) -> bool:
        return not self._left and not self._runs

    def offer(self, work: Work, now_s: float) -> Job | Refusal:
        if len(self._waiting) + len(work.lengths) > self.limits.max_queue_rows:
            return Refusal(Reason.FULL, self._delay_s)
        job = Job(next(self._numbers), work, now_s)
        self._left[job] = len(work.lengths)
        self._waiting.extend((job, row) for row in range(len(work.lengths)))
        return job

    def next_run(self, now_s: float) -> Run | None:
        if not self._ready and self._waiting and (self.rest_s(now_s) or 0.0) <= 0:
            size = min(self._batch_rows, len(self._waiting))
            self._ready.extend(self._passes([self._waiting.popleft() for _ in range(size)]))
        if not self._ready:
            return None
        self._runs += 1
        return Run(self._ready.popleft(), now_s, 0.0)

    def rest_s(self, now_s: float) -> float | None:
        if not self._waiting:
            return None
        if len(self._waiting) >= self._batch_rows:
            return 0.0
        return max(0.0, self._waiting[0][0].admitted_s + self._delay_s - now_s)

    def finish(self, run: Run, now_s: float, failed: bool = False) -> None:
        self._runs -= 1
        for job, _ in run.planned.entries:
            if job in self._left:
                self._left[job] -= 1
                if not self._left[job]:
                    self._end(job, Outcome.FAILED if failed else Outcome.DONE)

    def cancel(self, job: Job) -> None:
        if job in self._left:
            self._waiting = deque(entry for entry in self._waiting if entry[0] is not job)
            self._end(job, Outcome.CANCELLED)

    def take_ended(self) -> Sequence[tuple[Job, Outcome]]:
        ended, self._ended = self._ended, []
        return ended

    def stats(self, now_s: float) -> Stats:
        return Stats(queued_rows=len(self._waiting), running_passes=self._runs)

    def _passes(self, entries: list[Entry]) -> list[Pass]:
        def length(entry: Entry) -> int:
            return entry[0].work.lengths[entry[1]]

        encoder = entries[0][0].work.encoder
        groups = groupby(sorted(entries, key=length), length)
        return [Pass(Group(encoder, tokens), self._times, list(rows)) for tokens, rows in groups]

    def _end(self, job: Job, outcome: Outcome) -> None:
        del self._left[job]
        self._ended.append((job, outcome))
