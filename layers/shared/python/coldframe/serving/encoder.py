"""The encoder in a server: a `TextEncoder` whose passes also hold other requests' rows."""

import math
from collections.abc import Sequence

from coldframe.errors import CallerGone, Overloaded
from coldframe.model.encoder import Embedded, TextEncoder, embedded
from coldframe.model.tokenizer import Window
from coldframe.scheduling.caller import Caller
from coldframe.scheduling.jobs import Outcome, Reason, Refusal, Work
from coldframe.serving.driver import Driver, Ticket
from coldframe.timing import Deadline
from coldframe.vectors import VALUE_BYTES

_BUSY = "The server has more work than it can answer in time. Send the request again after Retry-After."
_GONE = "The caller hung up before the answer was there, or this server is stopping. Send the request again."
_TOKEN_BYTES = 40  # of a row: a list element and an integer


class SharedEncoder(TextEncoder):
    """Encodes in passes that rows of other requests share. Safe for threads.

    Embeddings equal the encoder's own, to the bit: a row does not depend on its neighbours.
    """

    def __init__(self, alone: TextEncoder, name: str, driver: Driver) -> None:
        """alone: its behaviour without other requests. name: its name in the driver."""
        super().__init__(alone.row_encoder, alone.max_batch_tokens, alone.ms_per_token)
        self._name = name
        self._driver = driver

    def embed(
        self,
        texts: Sequence[Sequence[Window]],
        deadline: Deadline,
        later: Sequence[Sequence[Window]] = (),
    ) -> Embedded:
        """Embeddings of texts from their windows, short ones first, as far as the time allows.

        Waits for the results. Where others leave no time: no embeddings, and `retry_after_s`, for a stated
        deadline or a request that may be rushed; otherwise raises Overloaded. Admission of a caller's rows
        includes its `later` rounds.
        Raises CallerGone when the caller disconnects, NotReady while the server stops.
        """
        caller = deadline.caller
        ticket = Ticket([window for text in texts for window in text])
        if not ticket.rows:
            return Embedded([], 0, 0, 0)
        job = self._driver.submit(self._work(ticket.rows, deadline, later), ticket)
        if caller is not None:
            caller.has_read()
        if isinstance(job, Refusal):
            return self._refused(job, texts, deadline)
        if caller is None:
            return _embedded(texts, ticket, ticket.wait())
        caller.job, caller.promised_s = job, job.promised_s
        caller.when_leaving(lambda: self._driver.cancel(job))
        try:
            return _embedded(texts, ticket, ticket.wait())._replace(is_last=job.is_cut)
        finally:
            if job.rest is None:
                self._end_part(caller, deadline)

    def end_rounds(self, deadline: Deadline) -> None:
        """Releases the time reserved for rounds that are not needed."""
        caller = deadline.caller
        if caller is not None and caller.job is not None and caller.job.rest is not None:
            self._driver.cancel(caller.job)
            self._end_part(caller, deadline)

    def _end_part(self, caller: Caller, deadline: Deadline) -> None:
        """All parts of a request that may be rushed share one promise: it needs no second one."""
        caller.when_leaving(None)
        if not deadline.may_rush:
            caller.begin_part(self._driver.now_s())

    def _work(self, rows: Sequence[Window], deadline: Deadline, later: Sequence[Sequence[Window]]) -> Work:
        deadline_s = self._driver.now_s() + deadline.remaining_s()
        lengths = [len(row) for row in rows]
        size_bytes = self._size_bytes([*lengths, *(len(row) for one in later for row in one)])
        caller = deadline.caller
        if caller is None:
            return Work(self._name, lengths, deadline_s, size_bytes=size_bytes)  # no caller could end it
        follows = caller.job if caller.job is not None and caller.job.rest is not None else None
        return Work(
            self._name,
            lengths,
            deadline_s,
            caller.bulk,
            size_bytes,
            caller.arrived_s,
            [[len(row) for row in one] for one in later],
            follows,
            deadline.may_rush,
        )

    def _size_bytes(self, lengths: Sequence[int]) -> int:
        """Memory of rows and their embeddings."""
        return len(lengths) * self.row_encoder.dimension * VALUE_BYTES + _TOKEN_BYTES * sum(lengths)

    def _refused(self, refusal: Refusal, texts: Sequence[Sequence[Window]], deadline: Deadline) -> Embedded:
        """Returns nothing for a stated deadline, and for a request that may be rushed: `auto` answers without
        the encoder. Otherwise raises Overloaded.
        """
        if refusal.reason is Reason.NEVER:
            retry_after_s = None
        else:
            retry_after_s = refusal.retry_after_s
            if math.isinf(deadline.remaining_s()) and not deadline.may_rush:
                raise Overloaded(_BUSY, retry_after_s)
        return Embedded([None] * len(texts), 0, 0, 0, retry_after_s)


def _embedded(texts: Sequence[Sequence[Window]], ticket: Ticket, outcome: Outcome) -> Embedded:
    if outcome is Outcome.CANCELLED:
        raise CallerGone(_GONE)
    if outcome is Outcome.FAILED:
        raise ticket.error or RuntimeError("A pass failed without an error. Report this as a bug.")
    return embedded(texts, ticket.embeddings, ticket.passes)
