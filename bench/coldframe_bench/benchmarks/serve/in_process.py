"""One policy at one rate, in this process: requests are handed to the driver when they are due."""

import gc
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coldframe.model.encoder import RowEncoder
from coldframe.model.tokenizer import Window
from coldframe.scheduling.jobs import Job, Outcome, Work
from coldframe.serving.driver import Driver, PassQueue, Ticket
from coldframe.timing import MovingAverage
from coldframe_bench.records.raw_files import Answer

STATUS = {Outcome.DONE: 200, Outcome.MISSED: 504, Outcome.CANCELLED: 499, Outcome.FAILED: 500}
REFUSED = 503
_LONGEST_S = 120.0  # until what was admitted is done


class _TimedTicket(Ticket):
    """A ticket that knows when it ended."""

    ended_s = 0.0

    def end(self, outcome: Outcome) -> None:
        self.ended_s = time.perf_counter()
        super().end(outcome)


@dataclass(frozen=True)
class Played:
    """Answers of one policy, in the order due.

    tokens_per_s: rate of requests that were done while others came. At the end, waiting requests are answered
    without the cost of new ones, which favours a queue without bounds. seconds: until the last one had ended.
    """

    answers: list[Answer]
    tokens_per_s: float
    seconds: float


def play(
    target: str,
    queue: PassQueue,
    encoder: RowEncoder,
    requests: Sequence[Sequence[Window]],
    due_s: Sequence[float],
    rate_rps: float,
    deadline_s: float,
) -> Played:
    """Hands each request over when it is due, in windows; its deadline runs from then."""
    encoders: Mapping[str, RowEncoder] = {"encoder": encoder}
    driver = Driver(queue, encoders, {"encoder": MovingAverage(0.1)}, time.perf_counter)
    gc.collect()
    gc.disable()
    try:
        start_s = time.perf_counter()
        tickets: list[_TimedTicket] = []
        sent_s: list[float] = []
        refused: set[int] = set()
        for number, (rows, due) in enumerate(zip(requests, due_s, strict=True)):
            if (left := start_s + due - time.perf_counter()) > 0:
                time.sleep(left)
            sent_s.append(time.perf_counter() - start_s)
            ticket = _TimedTicket(rows)
            work = Work("encoder", [len(row) for row in rows], start_s + due + deadline_s)
            if not isinstance(driver.submit(work, ticket), Job):
                refused.add(number)
                ticket.ended_s = time.perf_counter()
            tickets.append(ticket)
        driver.drain(_LONGEST_S)
    finally:
        gc.enable()
        driver.close()
    answers = []
    for number, ticket in enumerate(tickets):
        status = REFUSED if number in refused else STATUS[ticket.outcome]
        latency_ms = (ticket.ended_s - start_s - due_s[number]) * 1e3
        answer = Answer(target, rate_rps, due_s[number], sent_s[number], latency_ms, status)
        answers.append(answer.rounded())
    ends_s = max((ticket.ended_s for ticket in tickets), default=start_s)
    last_s = max(sent_s, default=0.0)
    tokens = sum(_tokens(ticket) for ticket in tickets if ticket.ended_s <= start_s + last_s)
    return Played(answers, tokens / last_s if last_s else 0.0, ends_s - start_s)


def _tokens(ticket: _TimedTicket) -> int:
    """Tokens computed for it; 0 where it was refused, or ended in another way."""
    return sum(map(len, ticket.rows)) if ticket.outcome is Outcome.DONE else 0
