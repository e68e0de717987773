"""Laws of plans and their forecasts."""

from hypothesis import given
from hypothesis import strategies as st

from coldframe.scheduling.forecast import Forecast
from coldframe.scheduling.jobs import Group, Job, Work
from coldframe.scheduling.passes import Pass
from coldframe.scheduling.plan import Plan
from tests.unit.coldframe.scheduling.virtual_time import KnownTimes

MODEL = KnownTimes(0.002, 0.0001)
SIZE = 4
rows = st.tuples(st.sampled_from([8, 16]), st.floats(0.001, 0.05))


def job_of(number: int, length: int, deadline_s: float) -> Job:
    """One row."""
    job = Job(number, Work("encoder", [length], deadline_s), 0.0)
    job.promise(deadline_s)
    return job


def group_of(length: int) -> Group:
    """Of rows of one length."""
    return Group("encoder", length)


@given(st.lists(rows, min_size=1, max_size=25), st.integers(1, 3), st.booleans())
def test_a_changed_plan_is_forecast_as_a_new_one(
    asked: list[tuple[int, float]], workers: int, join: bool
) -> None:
    """What is played again from the first change only ends as what is played from the beginning."""
    free_s = [0.001 * worker for worker in range(workers)]
    plan = Plan()
    for number, (length, deadline_s) in enumerate(asked):
        before, entries = plan.forecast(free_s, 1.0), [(job_of(number, length, deadline_s), 0)]
        ends_s, late = list(before.ends_s), dict(before.late)
        changed = plan.copy()
        left = changed.join(entries, group_of(length), SIZE, before.late) if join else entries
        changed.add_rows(left, group_of(length), MODEL, SIZE)
        found, anew = changed.forecast(free_s, 1.0), Forecast(changed.passes, free_s, 1.0)
        assert found.ends_s == anew.ends_s
        assert found.late == anew.late
        assert (before.ends_s, before.late) == (ends_s, late)
        plan = changed


@given(st.lists(rows, min_size=1, max_size=12))
def test_forecasts_follow_changes_in_place(asked: list[tuple[int, float]]) -> None:
    """A pass that was taken, and a job that was dropped, are in no forecast any more."""
    plan = Plan()
    for number, (length, deadline_s) in enumerate(asked):
        plan.forecast([0.0], 1.0)
        plan.add(Pass(group_of(length), MODEL, [(job_of(number, length, deadline_s), 0)]))
    while plan:
        assert plan.forecast([0.0], 1.0).ends_s == Forecast(plan.passes, [0.0], 1.0).ends_s
        plan.take_first()
        if plan:
            assert plan.forecast([0.0], 1.0).ends_s == Forecast(plan.passes, [0.0], 1.0).ends_s
            plan.drop(plan.passes[-1].entries[0][0])


def test_nobody_joins_a_closed_pass() -> None:
    """Rows that find no other room are left over."""
    plan = Plan()
    plan.add(Pass(group_of(8), MODEL, [(job_of(0, 8, 0.01), 0)]))
    entries = [(job_of(1, 8, 0.02), 0)]
    assert plan.join(entries, group_of(8), SIZE, closed=set(plan.passes)) == entries
    assert plan.join(entries, group_of(8), SIZE) == []
