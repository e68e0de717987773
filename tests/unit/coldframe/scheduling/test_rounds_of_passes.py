"""Requests whose rows come in rounds: one promise for all of them."""

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.scheduling.jobs import Job, Outcome, Reason, Refusal, Work
from coldframe.scheduling.limits import Limits
from coldframe.scheduling.scheduler import Scheduler
from tests.unit.coldframe.scheduling.virtual_time import ENCODER, Arrival, Fate, KnownTimes, VirtualDevice

WINDOW_S = 0.0256
"""What a window of 256 tokens takes."""
WINDOWS = 4


def long_texts(load: float, workers: int, read: Callable[[random.Random], int]) -> list[Arrival]:
    """A minute of texts of four windows, at so much of what the device can do. read: windows of each."""
    chance = random.Random(3)
    needed = [read(chance) for _ in range(4000)]
    mean_s = WINDOW_S * sum(needed) / len(needed) / workers
    now_s, arrivals = 0.0, []
    for windows in needed:
        now_s += chance.expovariate(load / mean_s)
        arrivals.append(Arrival(now_s, [256], later=[[256]] * (WINDOWS - 1), rounds=windows - 1))
        if now_s > 60:
            break
    return arrivals


def figures(fates: Sequence[Fate]) -> tuple[float, float, float]:
    """Seconds of the slowest hundredth of the answers; refused half-way, and answered, of all that began."""
    begun = [fate for fate in fates if fate.admitted]
    took_s = [fate.whole_s - fate.arrival.at_s for fate in begun if fate.whole_s is not None]
    half_way = sum(fate.half_way is not None for fate in begun)
    return float(np.quantile(took_s, 0.99)), half_way / len(begun), len(took_s) / len(fates)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "read",
    [lambda chance: WINDOWS, lambda chance: chance.choice([1, 1, 1, 2, 3, 4])],
    ids=["all windows", "settled early"],
)
def test_long_texts_keep_the_promise(workers: int, read: Callable[[random.Random], int]) -> None:
    """At 150 %, answers come within the objective, hardly any work is begun in vain, and none is left out."""
    limits = Limits(workers=workers)
    device = VirtualDevice(limits, KnownTimes(0.0, WINDOW_S / 256))
    p99_s, half_way, answered = figures(device.play(long_texts(1.5, workers, read)))
    assert p99_s <= limits.objective_s
    assert half_way == 0
    assert answered > 0.95 / 1.5
    assert device.scheduler.is_idle
    stats = device.scheduler.stats(device.now_s)
    assert (stats.queued_rows, stats.queued_bytes, stats.late) == (0, 0, 0)


def offered(scheduler: Scheduler, work: Work, now_s: float = 0.0) -> Job:
    job = scheduler.offer(work, now_s)
    assert isinstance(job, Job)
    return job


def device(**limits: float) -> Scheduler:
    return Scheduler(Limits(**limits), {ENCODER: KnownTimes(0.0, 0.001)})  # type: ignore[arg-type]


def test_expected_rows_take_room_but_no_worker() -> None:
    """What is kept for later rounds counts for others' admission, is never run, and is given back."""
    scheduler = device(objective_s=0.4)
    first = offered(scheduler, Work(ENCODER, [100], later=[[100]], size_bytes=1000))
    assert (scheduler.stats(0.0).queued_rows, scheduler.stats(0.0).queued_bytes) == (2, 1000)
    busy = scheduler.offer(Work(ENCODER, [250], deadline_s=0.4), 0.0)
    assert isinstance(busy, Refusal)
    assert busy.reason is Reason.BUSY
    run = scheduler.next_run(0.0)
    assert run is not None
    assert scheduler.next_run(0.0) is None
    scheduler.finish(run, 0.1)
    assert first.outcome is Outcome.DONE
    assert (scheduler.next_run(0.1), scheduler.is_idle) == (None, True)
    assert scheduler.stats(0.1).queued_rows == 1
    scheduler.cancel(first)
    assert (scheduler.stats(0.1).queued_rows, scheduler.stats(0.1).queued_bytes) == (0, 0)


def test_a_round_that_follows_is_never_refused() -> None:
    """However full the queue is, and however late: it has the promise of its request."""
    scheduler = device(objective_s=1.0, max_queue_rows=3)
    first = offered(scheduler, Work(ENCODER, [100], later=[[100]]))
    offered(scheduler, Work(ENCODER, [10]))
    run = scheduler.next_run(0.0)
    assert run is not None
    scheduler.finish(run, 0.1)
    second = offered(scheduler, Work(ENCODER, [100], follows=first), 5.0)
    assert (second.promised_s, second.due_s) == (first.promised_s, first.due_s)


def test_time_counts_from_when_a_request_came() -> None:
    """What a request waited before it is offered is part of its objective.

    One that waited for all of it may come again: it is not its own length that there is no time for.
    """
    scheduler = device(objective_s=1.0)
    assert offered(scheduler, Work(ENCODER, [100], arrived_s=9.5), 10.0).promised_s == 10.5
    late = scheduler.offer(Work(ENCODER, [100], arrived_s=9.0), 10.0)
    assert isinstance(late, Refusal)
    assert late.reason is Reason.BUSY
    run = scheduler.next_run(10.0)
    assert run is not None
    scheduler.finish(run, 10.6)
    assert (scheduler.stats(10.6).done, scheduler.stats(10.6).late) == (1, 1)


def test_with_a_deadline_some_rounds_are_better_than_none() -> None:
    """There is time for the first round alone: it is admitted, and the next ones as far as the time goes."""
    scheduler = device()
    job = offered(scheduler, Work(ENCODER, [100], deadline_s=0.15, later=[[100]]))
    assert job.rest is None


rounds = st.lists(st.lists(st.integers(1, 64), min_size=1, max_size=3), max_size=3)


@st.composite
def arrivals_in_rounds(draw: st.DrawFn) -> list[Arrival]:
    """Requests with and without later rounds, of which some are needed; some hang up."""
    found = []
    for _ in range(draw(st.integers(0, 25))):
        later = draw(rounds)
        lengths = draw(st.lists(st.integers(1, 64), min_size=1, max_size=4))
        needed = draw(st.integers(0, len(later)))
        at_s, cancel_s = draw(st.floats(0, 0.5)), draw(st.sampled_from([float("inf"), 0.05]))
        found.append(Arrival(at_s, lengths, cancel_s=cancel_s, later=later, rounds=needed))
    return found


@given(arrivals_in_rounds(), st.integers(1, 3), st.floats(0.3, 4))
def test_what_is_taken_is_given_back(requests: list[Arrival], workers: int, slower: float) -> None:
    """Whatever comes, settles early or hangs up: bounds hold, no round is refused, and nothing stays kept."""
    limits = Limits(workers=workers, objective_s=0.1, max_queue_rows=40, max_queue_bytes=3000)
    model = KnownTimes(0.002, 0.0001)

    def check(device: VirtualDevice) -> None:
        stats = device.scheduler.stats(device.now_s)
        assert 0 <= stats.queued_rows <= limits.max_queue_rows
        assert 0 <= stats.queued_bytes <= limits.max_queue_bytes

    device = VirtualDevice(limits, model, lambda rows, tokens: slower * model.shape_s(rows, tokens))
    fates = device.play(requests, check)
    stats = device.scheduler.stats(device.now_s)
    assert not any(fate.half_way for fate in fates)
    assert (stats.queued_rows, stats.queued_bytes, stats.queued_jobs) == (0, 0, 0)
    assert device.scheduler.is_idle
