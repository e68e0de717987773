"""What jobs need of the world: a store of records, objects, a queue, somebody to tell. AWS is one of them."""

from collections.abc import Sequence
from typing import Protocol

from coldframe.errors import ColdframeError
from coldframe.jobs.object_file import Pin
from coldframe.jobs.records import Body, Job, Result
from coldframe.jobs.states import Event


class Unavailable(ColdframeError):
    """A service did not do what it was asked, and may do it later. The text names the failure alone."""


class BadSource(ColdframeError):
    """A source cannot be read, now or later; the text says where and why, and holds nothing of it."""


class Store(Protocol):
    """Records of jobs. Each method may raise Unavailable, and may have done its work all the same.

    Every change is conditional: who comes late changes nothing, and learns how it is.
    """

    def create(self, job: Job) -> Job:
        """Adds a job; the one that is there already when there is one of that name."""

    def get(self, job_id: str) -> Job | None:
        """A job as it is."""

    def get_many(self, job_ids: Sequence[str]) -> dict[str, Job]:
        """Those that there are."""

    def apply(self, job_id: str, event: Event, reason: str = "") -> Job | None:
        """Changes the state by `states.step`; how the job is then. None when there is none."""

    def set_parts(self, job_id: str, parts: int) -> Job | None:
        """Says how many parts there are, where that is not known yet."""

    def record(self, job_id: str, result: Result) -> Job | None:
        """Records a part's result, and counts it, unless there is one or the job has ended."""

    def results(self, job_id: str) -> list[Result]:
        """What is recorded, by part."""

    def recorded(self, parts: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
        """Of these parts, those that have a result."""

    def add_start(self, message_id: str, start: str) -> int:
        """Notes that a message is begun alone; how many starts are noted, this one included."""

    def remove_start(self, message_id: str, start: str) -> None:
        """The environment has survived that start."""

    def starts(self, message_ids: Sequence[str]) -> dict[str, int]:
        """How many starts are noted of each message; 0 is left out."""

    def set_notified(self, job_id: str) -> None:
        """Somebody was told."""


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
