"""Requests that accept an answer by less work: whole, cut, or without rows, by the predicted wait."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from coldframe.scheduling.jobs import Job, Outcome, Refusal, Work
from coldframe.scheduling.limits import Limits
from coldframe.scheduling.scheduler import Scheduler
from tests.unit.coldframe.scheduling.test_scheduler import ROUNDING_S, arrivals, limits, models
from tests.unit.coldframe.scheduling.virtual_time import ENCODER, Arrival, Fate, KnownTimes, VirtualDevice

PER_TOKEN_S = 0.001
ROOM = Limits(objective_s=1.0, max_queue_rows=1 << 20, max_queue_bytes=1 << 40)


def effort(fate: Fate) -> int:
    """2: all rounds. 1: only the rows at once. 0: no rows."""
    return 0 if not fate.admitted else 1 if fate.is_cut else 2


def flood(times: float, count: int, arrival: Arrival) -> list[Arrival]:
    """Requests at `times` what the device can do. Each needs all its rows."""
    own_s = PER_TOKEN_S * (sum(arrival.lengths) + sum(sum(rows) for rows in arrival.later))
    return [replace(arrival, at_s=number * own_s / times) for number in range(count)]


@given(arrivals(), limits, models)
def test_nobody_is_refused(requests: list[Arrival], limit: Limits, model: KnownTimes) -> None:
    """Each request is admitted or rushed, and what is admitted is done in time."""
    device = VirtualDevice(limit, model)
    fates = device.play([replace(request, may_rush=True) for request in requests])
    stats = device.scheduler.stats(device.now_s)
    assert stats.refused == stats.missed == stats.late == 0
    assert stats.rushed == sum(not fate.admitted for fate in fates)
    for fate in fates:
        if fate.admitted:
            assert fate.outcome is Outcome.DONE
            assert fate.end_s <= fate.due_s + ROUNDING_S


@given(arrivals(), limits, models)
def test_whoever_accepts_less_takes_no_more(
    requests: list[Arrival], limit: Limits, model: KnownTimes
) -> None:
    """Where requests may be rushed, no row of theirs is planned to end later than where they may not."""
    for request in requests:
        offer = Work(ENCODER, request.lengths, request.within_s, request.bulk)
        plain = Scheduler(limit, {ENCODER: model}).offer(offer, 0.0)
        rushed = Scheduler(limit, {ENCODER: model}).offer(replace(offer, may_rush=True), 0.0)
        if isinstance(rushed, Job):
            assert isinstance(plain, Job)
            assert rushed.due_s <= plain.due_s + ROUNDING_S
            assert rushed.promised_s == plain.promised_s


@given(st.integers(1, 60), st.lists(st.integers(1, 60), max_size=3))
def test_a_quiet_device_computes_all(length: int, later: list[int]) -> None:
    """Without other work and without a deadline no answer is rushed, however long its texts are."""
    request = Arrival(0.0, [length] * 30, later=[[rows] for rows in later], may_rush=True)
    (fate,) = VirtualDevice(ROOM, KnownTimes(0.0, PER_TOKEN_S)).play([request])
    assert effort(fate) == 2


@given(st.integers(1, 30), st.integers(1, 4), st.integers(2, 80))
def test_effort_falls_with_the_wait(length: int, rounds: int, count: int) -> None:
    """Of equal requests at one moment, none that comes later gets more windows than one before it."""
    request = Arrival(0.0, [length], later=[[length]] * rounds, rounds=rounds, may_rush=True)
    fates = VirtualDevice(ROOM, KnownTimes(0.0, PER_TOKEN_S)).play([request] * count)
    efforts = [effort(fate) for fate in fates]
    assert efforts == sorted(efforts, reverse=True)


def test_fewer_windows_before_none() -> None:
    """As requests pile up, some are whole, then some are cut, and only then some get no rows."""
    request = Arrival(0.0, [40], later=[[40]] * 3, rounds=3, may_rush=True)
    fates = VirtualDevice(ROOM, KnownTimes(0.0, PER_TOKEN_S)).play([request] * 40)
    assert {effort(fate) for fate in fates} == {0, 1, 2}


def test_three_times_the_capacity() -> None:
    """At three times the capacity the device stays busy, and whoever is admitted is done in half the time."""
    requests = flood(3.0, 600, Arrival(0.0, [40], may_rush=True))
    device = VirtualDevice(ROOM, KnownTimes(0.0, PER_TOKEN_S))
    fates = device.play(requests)
    admitted = [fate for fate in fates if fate.admitted]
    assert len(admitted) > len(fates) / 3
    assert all(fate.end_s <= fate.arrival.at_s + ROOM.objective_s / 2 + ROUNDING_S for fate in admitted)


def test_the_wait_for_a_thread_counts() -> None:
    """A request that has spent half its time before its offer gets no rows, on a quiet device, too."""
    scheduler = Scheduler(ROOM, {ENCODER: KnownTimes(0.0, PER_TOKEN_S)})
    in_time = Work(ENCODER, [40], arrived_s=0.0, may_rush=True)
    assert isinstance(scheduler.offer(in_time, 0.4), Job)
    assert isinstance(scheduler.offer(in_time, 0.5), Refusal)
    assert isinstance(scheduler.offer(replace(in_time, may_rush=False), 0.5), Job)


def test_rows_that_would_be_late_are_given_up() -> None:
    """Where passes take longer than predicted, waiting rows are given up at the end of the request's time."""
    slow = VirtualDevice(ROOM, KnownTimes(0.0, PER_TOKEN_S), lambda rows, tokens: 10 * PER_TOKEN_S * tokens)
    fates = slow.play([Arrival(0.0, [100], may_rush=True)] * 4)
    outcomes = [fate.outcome for fate in fates if fate.admitted]
    assert outcomes[0] is Outcome.DONE
    assert outcomes[-1] is Outcome.MISSED
