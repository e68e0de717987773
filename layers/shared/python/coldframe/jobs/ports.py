"""Services that jobs need: a store of records, objects, queues, a notifier. AWS has one of each."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from coldframe.errors import ColdframeError
from coldframe.jobs.object_file import Pin
from coldframe.jobs.records import Body, Job, PartName, Result, SplitPlace
from coldframe.jobs.states import Event


class Unavailable(ColdframeError):
    """A service did not do what it was asked, and may do it later. The text names the failure alone."""


class BadSource(ColdframeError):
    """A source cannot be read, now or later; the text says where and why, and holds nothing of it."""


class Store(Protocol):
    """Records of jobs. Each method may raise Unavailable, and may have done its work all the same.

    Every change is a conditional write to one item, and is about one generation of a job. A repeated or late
    change alters nothing. An expired job is not there, even while its item is.
    """

    def create(self, job: Job) -> Job:
        """Adds a job; the job that is there already, unless that one has expired.

        A failed or cancelled job of the same digest is replaced: the request is tried anew.
        """

    def get(self, job_id: str) -> Job | None:
        """A job as it is."""

    def get_many(self, job_ids: Sequence[str]) -> dict[str, Job]:
        """Jobs by id; unknown ones are left out."""

    def end(self, job: Job, event: Event, reason: str = "") -> Job | None:
        """Ends a job by `states.step`. None where this call changed nothing."""

    def set_parts(self, job: Job, parts: int) -> Job | None:
        """Says how many parts there are. The job as it is then; None when there is none."""

    def begin_split(self, job: Job, place: SplitPlace) -> None:
        """Notes the first place of a split, unless there is one."""

    def advance(self, job: Job, to: SplitPlace, parts: int | None = None) -> Job | None:
        """Moves the split on from `job.split`. parts: their number, at the end of the source.

        None where another run has moved it, or the job has ended.
        """

    def add_split_start(self, job: Job, start: str) -> int:
        """Notes a run that begins at `job.split`. Returns the runs noted there; 0 where it has moved."""

    def remove_split_start(self, job: Job, start: str) -> None:
        """Takes back a note of `add_split_start`: the run had no turn."""

    def put_result(self, job: Job, result: Result) -> None:
        """Keeps a part's result, unless there is one."""

    def add_done(self, job: Job, parts: Sequence[int]) -> Job | None:
        """Adds parts to the answered ones. The job as it is then; None when there is none."""

    def results(self, job: Job, first: int) -> Iterator[Result]:
        """Results by part, from part `first` on, read as they are taken."""

    def recorded(self, parts: Sequence[PartName]) -> set[PartName]:
        """Which of these parts have a result."""

    def add_start(self, message_id: str, start: str) -> int:
        """Notes that a message is begun alone; how many starts are noted, this one included."""

    def remove_start(self, message_id: str, start: str) -> None:
        """Takes back a note of `add_start`: the environment has survived."""

    def starts(self, message_ids: Sequence[str]) -> dict[str, int]:
        """Starts noted of each message; 0 is left out."""

    def set_notified(self, job: Job) -> None:
        """Notes that nobody has to be notified any more."""

    def due(self, now_s: float) -> Iterator[Job]:
        """Jobs whose `due_s` is over, read as they are taken. An index is a moment late."""

    def postpone(self, job: Job, due_s: float) -> None:
        """Sets when the sweeper looks at a job again."""


class Objects(Protocol):
    """Objects of the deployment's bucket, and of callers' buckets. Raises Unavailable."""

    def put(self, key: str, content: bytes) -> None: ...

    def get(self, key: str) -> bytes: ...

    def pin(self, uri: str) -> Pin:
        """The version of a caller's object that is there now. Raises BadSource, too."""

    def read_range(self, uri: str, pin: Pin, first: int, last: int) -> bytes:
        """Bytes of that version from the first place to the last one, both included.

        Raises BadSource, too, also where the object is another one by now.
        """

    def url(self, key: str) -> str:
        """An address from which an object can be fetched for an hour."""


class Queue(Protocol):
    """Where messages are sent. Raises Unavailable."""

    def send(self, bodies: Sequence[Body]) -> None:
        """Sends all of them; some may have been sent when it raises."""

    def retry_in(self, receipt_handle: str, delay_s: int) -> None:
        """Lets a message be received again after so long."""

    def fail(self, body: str, reason: str) -> None:
        """Sends a message to the queue of failed ones, with its reason."""


class Teller(Protocol):
    """Tells who asked for it. Raises Unavailable; BadSource for what will never be taken."""

    def tell(self, job: Job) -> None: ...
