"""Services that jobs need: a store of records, objects, queues, a notifier. AWS implements each."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from coldframe.errors import ColdframeError
from coldframe.jobs.object_file import Pin
from coldframe.jobs.records import Body, Job, PartName, Result, SplitPlace
from coldframe.jobs.states import Event


class Unavailable(ColdframeError):
    """A service failed, and may work later. The text names the failure alone."""


class BadSource(ColdframeError):
    """A source cannot be read, now or later. The text says where and why, and quotes nothing from the
    source.
    """


class Store(Protocol):
    """Records of jobs. Each method may raise Unavailable even after it has done its work.

    Every change is a conditional write to one item, and concerns one generation of a job. A repeated or late
    change alters nothing. An expired job does not exist for callers, even while its item does.
    """

    def create(self, job: Job) -> Job:
        """Adds a job. Returns the existing job instead, unless it has expired.

        A failed or cancelled job of the same digest is replaced: the request is tried again.
        """

    def get(self, job_id: str) -> Job | None:
        """The current job."""

    def get_many(self, job_ids: Sequence[str]) -> dict[str, Job]:
        """Jobs by id; unknown ones are left out."""

    def end(self, job: Job, event: Event, reason: str = "") -> Job | None:
        """Ends a job by `states.step`. None where this call changed nothing."""

    def set_parts(self, job: Job, parts: int) -> Job | None:
        """Records the number of parts. Returns the job after that; None if it does not exist."""

    def begin_split(self, job: Job, place: SplitPlace) -> None:
        """Records the first place of a split, unless there is one."""

    def advance(self, job: Job, to: SplitPlace, parts: int | None = None) -> Job | None:
        """Advances the split from `job.split`. parts: their number, at the end of the source.

        None where another run has advanced it, or the job has ended.
        """

    def add_split_start(self, job: Job, start: str) -> int:
        """Records a run that begins at `job.split`. Returns the runs recorded there; 0 if the split has
        advanced.
        """

    def remove_split_start(self, job: Job, start: str) -> None:
        """Reverts `add_split_start`: the run did not take place."""

    def put_result(self, job: Job, result: Result) -> None:
        """Stores a part's result, unless there is one."""

    def add_done(self, job: Job, parts: Sequence[int]) -> Job | None:
        """Adds parts to the answered ones. Returns the job after that; None if it does not exist."""

    def results(self, job: Job, first: int) -> Iterator[Result]:
        """Results by part, from part `first` on, read lazily."""

    def recorded(self, parts: Sequence[PartName]) -> set[PartName]:
        """Numbers among `parts` that have a result."""

    def add_start(self, message_id: str, start: str) -> int:
        """Records that a message starts alone. Returns its recorded starts, with this one."""

    def remove_start(self, message_id: str, start: str) -> None:
        """Reverts `add_start`: the environment has survived."""

    def starts(self, message_ids: Sequence[str]) -> dict[str, int]:
        """Recorded starts of each message; messages without any are left out."""

    def set_notified(self, job: Job) -> None:
        """Records that no notice is needed any more."""

    def due(self, now_s: float) -> Iterator[Job]:
        """Jobs whose `due_s` has passed, read lazily. The index lags by a moment."""

    def postpone(self, job: Job, due_s: float) -> None:
        """Sets when the sweeper looks at a job again."""


class Objects(Protocol):
    """Objects of the deployment's bucket, and of callers' buckets. Raises Unavailable."""

    def put(self, key: str, content: bytes) -> None: ...

    def get(self, key: str) -> bytes: ...

    def pin(self, uri: str) -> Pin:
        """The current version of a caller's object. Also raises BadSource."""

    def read_range(self, uri: str, pin: Pin, first: int, last: int) -> bytes:
        """Bytes of that version from the first place to the last one, both included.

        Also raises BadSource, among other things if the object has changed.
        """

    def url(self, key: str) -> str:
        """An address from which an object can be fetched for an hour."""


class Queue(Protocol):
    """A queue to send messages to. Raises Unavailable."""

    def send(self, bodies: Sequence[Body]) -> None:
        """Sends all messages; some may have been sent when it raises."""

    def retry_in(self, receipt_handle: str, delay_s: int) -> None:
        """Hides a message for `delay_s` seconds, after which it is received again."""

    def fail(self, body: str, reason: str) -> None:
        """Sends a message to the queue of failed messages, with its reason."""


class Notifier(Protocol):
    """Notifies the job's receivers. Raises Unavailable; BadSource if a receiver can never be notified."""

    def notify(self, job: Job) -> None: ...
