"""The experiment of an environment: read once a minute, with counts written and decisions made then.

On a server a thread does this. On Lambda it happens after an answer is built, or during a ping, within a
deadline: a frozen environment runs no thread. Only boto3's import runs in a thread, which may be frozen.
"""

import os
import threading
import time
from collections.abc import Callable

from coldframe.cache.policy import Breaker
from coldframe.config import Settings
from coldframe.experiments.arms import Lineup, serve_arms
from coldframe.experiments.document import read_run
from coldframe.experiments.judging import Judge
from coldframe.experiments.part import Caller, Chooser, Part
from coldframe.experiments.shadow import Shadows
from coldframe.experiments.stores import (
    COUNTS,
    CURRENT,
    DOCUMENT,
    FolderStore,
    Item,
    Store,
    StoreFails,
)
from coldframe.experiments.table import open_store
from coldframe.experiments.tally import Tally
from coldframe.pipeline.models import Models
from coldframe.schemas import PredictRequest
from coldframe.timing import Clock, Deadline, log_line

_EVERY_S = 60.0
_STALE_S = 600.0
"""Time after which a document that cannot be read again counts as missing."""
_FIRST_S = 1.0
_PATIENCE_S = 5.0
"""Deadline of a server's thread, for which no caller waits."""


class Keeper:
    """Keeps `lineup` up to date: None without an experiment. Safe for threads."""

    def __init__(
        self,
        store: Store,
        models: Models,
        log: Callable[[str], None],
        deadline_s: float,
        judge: Callable[[Lineup, Deadline], None] = lambda lineup, deadline: None,
        clock: Clock = time.monotonic,
    ) -> None:
        """deadline_s: most time that an answer waits for the store. judge: decides about a run."""
        self._store = store
        self._models = models
        self._log = log
        self._name = ""
        self._deadline_s = deadline_s
        self._judge = judge
        self._clock = clock
        self._tally = Tally()
        self._chooser = Chooser(self._tally, Shadows())
        self._breaker = Breaker(clock)
        self._turn = threading.Lock()
        self._due_s = self._read_s = -_EVERY_S
        self._reason = ""
        self._said_s = clock()
        self._is_set_up = self._has_answered = False
        self._has_news = False  # counts that no decision has seen
        self._setting_up: threading.Thread | None = None
        self._ending, self._has_looked = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.lineup: Lineup | None = None

    def choose(self, request: Caller, body: PredictRequest) -> Part | None:
        """The part of a request in the experiment; None for a request outside of it."""
        lineup = self.lineup
        return None if lineup is None else self._chooser.choose(lineup, request, body)

    def start(self) -> None:
        """Reads and writes from a thread, from now on. Waits a moment for the first reading."""
        self._thread = threading.Thread(target=self._run, name="experiment", daemon=True)
        self._thread.start()
        self._has_looked.wait(_FIRST_S)

    def set_up(self) -> None:
        """Reads the document now, where no caller waits. Never raises."""
        self._look(Deadline(_PATIENCE_S, self._clock))

    def close(self) -> None:
        """Ends the thread, writes the last counts, and decides once more."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(_PATIENCE_S)
        self._look(Deadline(_PATIENCE_S, self._clock))

    def before_snapshot(self) -> None:
        """Closes the store's connections, which do not survive a snapshot."""
        self._store.close()

    def after_restore(self) -> None:
        """Starts again in an environment that was restored from a snapshot: it has another name."""
        self._name, self._due_s = "", self._clock()

    def after_answer(self, time_left_s: float) -> None:
        """Once a minute, reads the document and writes the counts; counts of each answer where they are to.

        For environments without a thread. time_left_s: until the platform stops the invocation.
        """
        if self._thread is not None:
            if self._writes_each:
                self._write_now(self._deadline_s)
            return
        if not self._is_ready():
            return
        limit_s = min(self._deadline_s, time_left_s)
        if limit_s > 0 and self._clock() >= self._due_s:
            self._look(Deadline(limit_s, self._clock), waits=False)
        elif limit_s > 0 and self._writes_each:
            self._write_now(limit_s)

    @property
    def _writes_each(self) -> bool:
        lineup = self.lineup
        return lineup is not None and lineup.run.experiment.counts == "answer"

    def _is_ready(self) -> bool:
        """Whether the store can be called at once. Else a thread imports its client, beside later requests.

        The first answer starts nothing: a cold start does not pay for an experiment.
        """
        if self._is_set_up or not self._has_answered:
            self._has_answered = True
            return self._is_set_up
        if self._setting_up is None:
            self._setting_up = threading.Thread(target=self._set_up, name="experiment-set-up", daemon=True)
            self._setting_up.start()
        return self._is_set_up

    def _set_up(self) -> None:
        try:
            self._store.set_up()
        except StoreFails as exc:
            self._say(str(exc))
        self._is_set_up = True

    def _run(self) -> None:
        while True:
            self._look(Deadline(_PATIENCE_S, self._clock))
            self._has_looked.set()
            if self._ending.wait(_EVERY_S):
                return

    def _look(self, deadline: Deadline, waits: bool = True) -> None:
        """Writes, reads and judges, one thread at a time. waits: for another thread's call to the store."""
        if not self._turn.acquire(blocking=waits):
            return
        try:
            self._due_s = self._clock() + _EVERY_S
            self._is_set_up = True
            self._try(lambda: self._exchange(deadline))
        finally:
            self._turn.release()

    def _write_now(self, limit_s: float) -> None:
        with self._turn:
            self._try(lambda: self._write(Deadline(limit_s, self._clock)))

    def _exchange(self, deadline: Deadline) -> None:
        self._write(deadline)
        self._read(deadline)
        if self._has_news and self.lineup is not None and self.lineup.run.state == "running":
            self._judge(self.lineup, deadline)
            self._has_news = False

    def _read(self, deadline: Deadline) -> None:
        item = self._store.read(CURRENT, DOCUMENT, deadline)
        self._read_s = self._clock()
        run = read_run(item.value) if item else None
        if run is None:
            self.lineup = None
            return self._say("The document of the experiment cannot be read." if item else "")
        if not run.is_active:
            self.lineup = None
            return self._say("")
        served = serve_arms(run, self._models)
        self.lineup = None if isinstance(served, str) else served
        return self._say(served if isinstance(served, str) else "")

    def _write(self, deadline: Deadline) -> None:
        self._name = self._name or _draw_name()
        for counts in self._tally.unwritten():
            item = Item(f"{COUNTS}{counts.lineup}/{self._name}", counts.value, counts.revision)
            self._store.write(counts.run, item, deadline)
            self._tally.stored(counts)
            self._has_news = True

    def _try(self, work: Callable[[], None]) -> None:
        """Calls the store unless it has failed lately. A failure is logged, and never raised."""
        if not self._breaker.allow():
            return
        try:
            work()
        except StoreFails as exc:
            self._breaker.failure()
            self._say(str(exc))
            if self._clock() - self._read_s > _STALE_S:
                self.lineup = None
        except Exception as exc:  # a defect must not reach a caller
            self._breaker.failure()
            self._say(type(exc).__name__)
        else:
            self._breaker.success()

    def _say(self, reason: str) -> None:
        """Logs why there is no experiment, or which call failed; once for each change."""
        if reason and reason != self._reason:
            spent_ms = round((self._clock() - self._said_s) * 1e3)
            self._log(log_line(event="experiment", because=reason, duration_ms=spent_ms))
            self._said_s = self._clock()
        self._reason = reason


def _draw_name() -> str:
    """A name of this environment that no other one has; a snapshot holds none."""
    return os.urandom(8).hex()


def open_keeper(settings: Settings, models: Models, log: Callable[[str], None], stays: bool) -> Keeper:
    """The experiment of the settings. stays: on a server, where a thread may run beside requests."""
    store = open_store(settings.experiments, settings.cache_deadline_ms / 1e3)
    silent = settings.log_level == "off"
    deadline_s, judge = settings.cache_deadline_ms / 1e3, Judge(store, time.time)
    keeper = Keeper(store, models, _no_log if silent else log, deadline_s, judge)
    if stays:
        keeper.start()
    elif isinstance(store, FolderStore):
        keeper.set_up()
    return keeper


def _no_log(line: str) -> None:
    """Logs nothing."""
