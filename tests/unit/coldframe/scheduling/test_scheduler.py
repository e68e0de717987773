"""Laws of the scheduler, in virtual time."""

import random
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe.scheduling.jobs import Job, Outcome, Reason, Work
from coldframe.scheduling.limits import Limits
from coldframe.scheduling.pass_times import PassTimes
from coldframe.scheduling.scheduler import Run, Scheduler
from tests.unit.coldframe.scheduling.virtual_time import Arrival, KnownTimes, VirtualDevice

ROUNDING_S = 1e-6
FIXED_S, TOKEN_S = 0.002, 0.0001
moments = st.floats(0, 0.5, allow_nan=False)
lengths = st.lists(st.integers(1, 64), min_size=1, max_size=6)
times_left = st.one_of(st.floats(0.001, 0.3), st.just(float("inf")))


@st.composite
def arrivals(draw: st.DrawFn, cancels: bool = False, most: int = 40) -> list[Arrival]:
    """Requests of some rows, with and without deadline, urgent and not, close together."""
    hang_ups = st.floats(0, 0.2) if cancels else st.just(float("inf"))
    one = st.builds(Arrival, moments, lengths, times_left, st.booleans(), hang_ups)
    return draw(st.lists(one, max_size=most))


limits = st.builds(
    Limits,
    workers=st.integers(1, 3),
    objective_s=st.floats(0.02, 0.3),
    bulk_patience_s=st.floats(0.3, 2),
    budget_tokens=st.integers(64, 512),
    max_queue_rows=st.integers(5, 60),
    max_queue_bytes=st.integers(300, 3000),
)
models = st.builds(KnownTimes, st.sampled_from([0.0, FIXED_S]), st.just(TOKEN_S), st.integers(1, 32))


@given(arrivals(), limits, models)
def test_promises_are_kept(requests: list[Arrival], limit: Limits, model: KnownTimes) -> None:
    """Where predictions are right, every request that is admitted is done by the moment promised."""
    for fate in VirtualDevice(limit, model).play(requests):
        if fate.admitted:
            assert fate.outcome is Outcome.DONE
            assert fate.end_s <= fate.due_s + ROUNDING_S


@given(arrivals(cancels=True), limits, models, st.integers(0, 5))
def test_every_request_ends_once(
    requests: list[Arrival], limit: Limits, model: KnownTimes, poison: int
) -> None:
    """Refused, done, missed, cancelled or failed: one of these, once, and counted so."""
    device = VirtualDevice(
        limit, model, fails=lambda run: any(job.number % 6 == poison for job in run.planned.jobs())
    )
    fates = device.play(requests)
    assert all(len(fate.ends) == fate.admitted for fate in fates)
    stats = device.scheduler.stats(device.now_s)
    outcomes = [fate.outcome for fate in fates if fate.admitted]
    assert stats.refused == len(fates) - len(outcomes)
    assert (stats.done, stats.missed, stats.cancelled, stats.failed) == tuple(
        outcomes.count(one) for one in (Outcome.DONE, Outcome.MISSED, Outcome.CANCELLED, Outcome.FAILED)
    )
    assert device.scheduler.is_idle
    assert (stats.queued_rows, stats.queued_bytes, stats.queued_jobs) == (0, 0, 0)


@given(arrivals(cancels=True), limits, models, st.floats(0.3, 6))
def test_bounds_hold(requests: list[Arrival], limit: Limits, model: KnownTimes, slower: float) -> None:
    """Rows and bytes of the queue never exceed their bounds, also where passes take longer than predicted."""

    def check(device: VirtualDevice) -> None:
        stats = device.scheduler.stats(device.now_s)
        assert stats.queued_rows <= limit.max_queue_rows
        assert stats.queued_bytes <= limit.max_queue_bytes
        assert stats.running_passes <= limit.workers

    VirtualDevice(limit, model, lambda rows, tokens: slower * model.shape_s(rows, tokens)).play(
        requests, check
    )


@given(arrivals(cancels=True), limits, models)
def test_no_worker_rests_while_rows_wait(requests: list[Arrival], limit: Limits, model: KnownTimes) -> None:
    """The scheduler conserves work: it never waits for company."""
    device = VirtualDevice(limit, model)
    device.play(requests)
    assert device.idle_while_waiting == 0


@given(arrivals(cancels=True), limits, models)
def test_passes_share_what_may_be_shared(requests: list[Arrival], limit: Limits, model: KnownTimes) -> None:
    """Rows of a pass have one length, several of them are within the budget, and no row runs twice."""
    device = VirtualDevice(replace(limit, max_budget_tokens=limit.budget_tokens), model)
    device.play(requests)
    seen = [entry for run in device.runs for entry in run.planned.entries]
    assert len(seen) == len(set(seen))
    for run in device.runs:
        assert len({job.work.lengths[row] for job, row in run.planned.entries}) == 1
        assert len(run.planned.entries) == 1 or run.planned.tokens <= limit.budget_tokens


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 60)), min_size=1, max_size=5))
def test_earliest_deadline_first_is_optimal(tasks: list[tuple[int, int]]) -> None:
    """Where any order meets all deadlines, all requests are admitted and meet theirs."""

    def meets_all(order: tuple[tuple[int, int], ...]) -> bool:
        ends = [sum(length for length, _ in order[: number + 1]) for number in range(len(order))]
        return all(end <= due for end, (_, due) in zip(ends, order, strict=True))

    device = VirtualDevice(Limits(), KnownTimes(0.0, 1.0))
    fates = device.play([Arrival(0.0, [length], due + ROUNDING_S) for length, due in tasks])
    if any(meets_all(order) for order in permutations(tasks)):
        # The first one begins as soon as it comes, before the scheduler knows of the others.
        first = fates[0]
        others_could = meets_all((tasks[0], *sorted(tasks[1:], key=lambda task: task[1])))
        assert first.admitted
        if others_could:
            assert all(fate.admitted and fate.outcome is Outcome.DONE for fate in fates)


def flood(until_s: float, every_s: float, within_s: float = float("inf")) -> list[Arrival]:
    """Urgent requests, more than the device can do."""
    return [Arrival(number * every_s, [40], within_s) for number in range(int(until_s / every_s))]


def test_urgent_first() -> None:
    """A request in no hurry waits for those that are, though they come later."""
    device = VirtualDevice(Limits(objective_s=0.5), KnownTimes(0.0, 0.001))
    bulk, *urgent = device.play([Arrival(0, [40] * 5, bulk=True), *flood(0.2, 0.05)])
    assert all(fate.admitted for fate in urgent)
    assert bulk.end_s > max(fate.end_s for fate in urgent[:3])


@pytest.mark.parametrize("within_s", [0.2, float("inf")])
def test_nothing_starves(within_s: float) -> None:
    """Under a flood of urgent requests that never ends, one in no hurry is done within its patience."""
    limit = Limits(objective_s=0.2, bulk_patience_s=1.0)
    device = VirtualDevice(limit, KnownTimes(0.0, 0.001))
    bulk, *urgent = device.play([Arrival(0, [40] * 5, bulk=True), *flood(4.0, 0.02, within_s)])
    assert bulk.outcome is Outcome.DONE
    assert bulk.end_s <= 1.0 + ROUNDING_S
    refused = [fate.refusal for fate in urgent if fate.refusal is not None]
    assert len(refused) > 50
    assert {one.reason for one in refused} == {Reason.BUSY}


@settings(max_examples=200)
@given(st.lists(st.tuples(st.floats(0, 0.1), st.integers(1, 32)), min_size=1, max_size=40, unique=True))
def test_retry_after_is_honest(requests: list[tuple[float, int]]) -> None:
    """Who comes again when told to, and finds that nobody else came, is admitted."""
    limit, model = Limits(objective_s=0.05), KnownTimes(0.0, 0.0005)
    sent = [Arrival(at_s, [length]) for at_s, length in sorted(requests)]
    fates = VirtualDevice(limit, model).play(sent)
    for number, fate in enumerate(fates):
        if fate.refusal is not None:
            assert fate.refusal.reason is Reason.BUSY
            again_s = fate.arrival.at_s + fate.refusal.retry_after_s + ROUNDING_S
            again = Arrival(again_s, fate.arrival.lengths)
            assert VirtualDevice(limit, model).play([*sent[:number], again])[-1].admitted


def test_overload_is_refused_not_late() -> None:
    """At 1.5 times what the device can do, admitted requests meet their deadlines and it is always busy."""
    device = VirtualDevice(Limits(), KnownTimes(0.0, 0.001))
    fates = device.play(flood(10.0, 0.04 / 1.5, within_s=0.25))
    admitted = [fate for fate in fates if fate.admitted]
    assert all(fate.end_s <= fate.due_s + ROUNDING_S for fate in admitted)
    assert len(admitted) / len(fates) == pytest.approx(1 / 1.5, rel=0.05)


def test_never_is_said_on_arrival() -> None:
    """What cannot be done in its time, whatever waits, is refused for that reason."""
    device = VirtualDevice(Limits(max_queue_rows=10), KnownTimes(0.0, 0.001))
    short, many = device.play([Arrival(0, [64], 0.05), Arrival(0, [1] * 11)])
    assert [fate.refusal and fate.refusal.reason for fate in (short, many)] == [Reason.NEVER, Reason.NEVER]


def test_hopeless_rows_are_not_run() -> None:
    """Where passes take four times what was predicted, a job whose deadline is lost takes nobody's time."""
    model = KnownTimes(0.0, 0.001)
    device = VirtualDevice(Limits(), model, lambda rows, tokens: 4 * model.shape_s(rows, tokens))
    fates = device.play([Arrival(0, [40], 0.5), *[Arrival(0.001, [40], 0.1 + 0.04 * n) for n in range(4)]])
    missed = [fate for fate in fates if fate.outcome is Outcome.MISSED]
    assert missed
    assert all(fate.begun_s is None for fate in missed)


def test_a_failing_row_fails_alone() -> None:
    """Of requests that shared a failing pass, only the one whose row is to blame fails."""

    def fails(run: Run) -> bool:
        return any(job.number == 2 for job in run.planned.jobs())

    device = VirtualDevice(Limits(), KnownTimes(FIXED_S, TOKEN_S), fails=fails)
    fates = device.play([Arrival(0, [8]), *[Arrival(0.0001, [8]) for _ in range(4)]])
    assert [fate.outcome for fate in fates] == [
        Outcome.FAILED if number == 2 else Outcome.DONE for number in range(5)
    ]


def test_a_caller_who_hangs_up_frees_the_place() -> None:
    """What was refused for want of room is admitted once a caller who waits hangs up."""
    device = VirtualDevice(Limits(max_queue_rows=2), KnownTimes(0.0, 0.001))
    _, gone, full, taken = device.play(
        [
            Arrival(0, [64]),
            Arrival(0, [64], cancel_s=0.01),
            Arrival(0.005, [64]),
            Arrival(0.02, [64]),
        ]
    )
    assert gone.outcome is Outcome.CANCELLED
    assert full.refusal is not None and full.refusal.reason is Reason.FULL
    assert taken.outcome is Outcome.DONE


@pytest.mark.parametrize(
    ("within_s", "lengths_of", "rate_rps"), [(0.25, (5, 20), 4000.0), (0.5, (20, 256), 350.0)]
)
def test_overload_with_passes_that_vary(
    within_s: float, lengths_of: tuple[int, int], rate_rps: float
) -> None:
    """At 1.4 times what two workers can do, 99 of 100 admitted requests meet their deadlines.

    Passes vary by a fifth, one in a hundred takes up to six times as long, and the model learns as it goes.
    """
    chance, model = random.Random(5), PassTimes()

    def true_s(rows: int, tokens: int) -> float:
        interrupted = 1 + 5 * chance.random() if chance.random() < 0.01 else 1.0
        return (3e-4 + 6e-5 * tokens) * chance.lognormvariate(0, 0.2) * interrupted

    at_s, requests = 0.0, []
    while at_s < 1.5:
        at_s += chance.expovariate(rate_rps)
        requests.append(Arrival(at_s, [chance.randint(*lengths_of)], within_s))
    fates = VirtualDevice(Limits(workers=2), model, true_s).play(requests)
    admitted = [fate for fate in fates if fate.admitted]
    met = [fate for fate in admitted if fate.outcome is Outcome.DONE and fate.end_s <= fate.due_s]
    assert 0.5 < len(admitted) / len(fates) < 0.85
    assert len(met) / len(admitted) >= 0.99


def test_company_is_found_under_overload() -> None:
    """A queue that is full stays one of large passes: more is answered than one row at a time could be."""
    model = PassTimes()
    for length in (4, 8, 16, 32):
        for rows in (1, 2, 4, 8, 16):
            model.calibrate(rows, length, FIXED_S + TOKEN_S * rows * length)
    chance, at_s, requests = random.Random(1), 0.0, []
    while at_s < 2:
        at_s += chance.expovariate(1200)
        requests.append(Arrival(at_s, [chance.randint(5, 12)], 0.25))
    device = VirtualDevice(Limits(), model, lambda rows, tokens: FIXED_S + TOKEN_S * tokens)
    done = sum(fate.outcome is Outcome.DONE for fate in device.play(requests))
    one_at_a_time = 2 / (FIXED_S + TOKEN_S * 8.5)
    assert done > 1.8 * one_at_a_time


def test_a_pass_may_hold_rows_of_any_length() -> None:
    """Where an encoder pads nothing, rows of all lengths share a pass, up to the budget by their mean."""
    model = KnownTimes(FIXED_S, TOKEN_S, largest=64)
    scheduler = Scheduler(Limits(budget_tokens=128), {"packed": model}, mixing=frozenset({"packed"}))
    for lengths_of_one in ([5, 60, 7], [9], [40, 7]):
        assert isinstance(scheduler.offer(Work("packed", lengths_of_one), 0.0), Job)
    run = scheduler.next_run(0.0)
    assert run is not None
    assert len({job for job, _ in run.planned.entries}) > 1
    assert run.planned.tokens == sum(job.work.lengths[row] for job, row in run.planned.entries)
