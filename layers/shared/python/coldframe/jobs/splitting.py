"""Divides a source into parts, lot by lot, from the place that the previous run reached.

Each lot is stored in S3, then sent, and then the job's place advances, unless another run has advanced it.
So a killed run costs the repeat of a lot, and of two concurrent runs one stops.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from coldframe.jobs.object_file import Cursor
from coldframe.jobs.ports import BadSource, Objects, Queue, Store
from coldframe.jobs.records import (
    MAX_PARTS,
    PART_BYTES,
    PART_TEXTS,
    Job,
    Part,
    SplitPlace,
    texts_key,
)
from coldframe.jobs.sources import read_parts
from coldframe.jobs.worker import MapAll
from coldframe.timing import Deadline

LOT_PARTS = 10
_MARGIN = 2.0
_TOO_LARGE = (
    f"the source has more than {MAX_PARTS} parts of {PART_TEXTS} texts or {PART_BYTES} bytes. Divide it, or"
    " classify it with coldframe offline"
)
_Texts = tuple[Part, list[str], Cursor]


@dataclass(frozen=True)
class Splitter:
    """Divides sources. queue: of parts. firmly: repeats an idempotent call."""

    store: Store
    objects: Objects
    queue: Queue
    firmly: Callable[[Callable[[], Any]], Any]
    map_all: MapAll = map

    def run(self, job: Job, by: str, deadline: Deadline) -> Job | None:
        """Divides until the time is used. by: name of this run.

        Returns the job after that, whose `parts` are set once it is divided; None where another run has
        advanced it, or it has ended. Raises BadSource, Unavailable.
        """
        slowest_s = 0.0
        parts = self._parts(job)
        while deadline.remaining_s() >= _MARGIN * slowest_s:
            before_s = deadline.remaining_s()
            lot = list(islice(parts, LOT_PARTS))
            moved = self._send(job, lot, by)
            if moved is None or moved.parts is not None:
                return moved
            job, slowest_s = moved, max(slowest_s, before_s - deadline.remaining_s())
        return job

    def _parts(self, job: Job) -> Iterator[_Texts]:
        """Parts from the job's place on."""
        assert job.source is not None  # noqa: S101 - only a job with a source is divided
        assert job.pin is not None  # noqa: S101 - the route pins every source
        place = job.split or SplitPlace()
        first = place.first
        read = read_parts(job.source, self.objects, job.pin, place.cursor)
        for number, (texts, after) in enumerate(read, place.part):
            yield Part(job.id, job.generation, number, first, key=texts_key(job, number)), texts, after
            first += len(texts)

    def _send(self, job: Job, lot: Sequence[_Texts], by: str) -> Job | None:
        """Sends a lot, and advances the job's place past it. A lot that is not full is the last one."""
        place = job.split or SplitPlace()
        count = place.part + len(lot)
        if count > MAX_PARTS:
            raise BadSource(_TOO_LARGE)
        if not count:
            raise BadSource("the source has no texts. Check its format")
        list(self.map_all(self._keep, lot))
        if lot:
            part, texts, cursor = lot[-1]
            self.firmly(lambda: self.queue.send([part for part, _, _ in lot]))
            place = SplitPlace(cursor, count, part.first + len(texts), by)
        to, parts = msgspec.structs.replace(place, by=by), count if len(lot) < LOT_PARTS else None
        moved: Job | None = self.firmly(lambda: self.store.advance(job, to, parts))
        return moved

    def _keep(self, each: _Texts) -> None:
        part, texts, _ = each
        self.firmly(lambda: self.objects.put(part.key, msgspec.json.encode(texts)))
