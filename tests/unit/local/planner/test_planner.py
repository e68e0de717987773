"""The planner: what each lever is, and that the cheapest which holds the goal wins."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe.capacity.idle_expiry import IdleExpiry
from coldframe.warming.policy import HoldCosts, held_levels, pinged_levels
from coldframe_local.cli import main
from coldframe_local.planner.levers.batching import batched
from coldframe_local.planner.levers.forecast_replay import Expectation
from coldframe_local.planner.levers.levers import batches
from coldframe_local.planner.levers.prediction import predicted
from coldframe_local.planner.levers.schedules import levels_by_hour, target_tracking, timetable
from coldframe_local.planner.levers.workload import Field
from coldframe_local.planner.planner import Plan, Planner, scaled, table
from coldframe_local.planner.scenarios.candidates import Candidate, Goal
from coldframe_local.planner.scenarios.pings import steady, with_pings
from coldframe_local.planner.scenarios.prices import load_prices
from coldframe_local.planner.scenarios.scenario import Scenario, play
from coldframe_local.planner.scenarios.timings import assumed
from coldframe_local.planner.simulator.concurrency import means, peaks
from coldframe_local.planner.simulator.server_queue import queue_waits
from coldframe_local.planner.simulator.simulator import Workload
from coldframe_local.planner.traces.made import made
from coldframe_local.planner.traces.read import read_trace
from coldframe_local.planner.traces.trace import Trace, TraceUnusable, as_trace
from tests.conftest import ROOT

SAMPLE = ROOT / "local" / "coldframe_local" / "planner" / "samples" / "office-day.csv"
US_EAST = load_prices().regions["us-east-1"]
MEASURED = assumed(1769, 8.0, 30.0, 800.0, 400.0)
GOAL = Goal(p99_ms=300.0, cold_share=0.01)
HOUR_S = 3600.0


def planned(trace: Trace, goal: Goal = GOAL, memories_mb: tuple[int, ...] = (1769, 3008)) -> Plan:
    planner = Planner(MEASURED, US_EAST, "arm64", goal, memories_mb, Scenario(memories_mb[0]), 1769)
    return planner.plan(trace)


def lever(plan: Plan, name: str) -> Candidate:
    return next(verdict.candidate for verdict in plan.verdicts if verdict.candidate.lever == name)


# What is under way at once.


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.0, 100.0), st.floats(0.01, 20.0)), min_size=1, max_size=40),
    st.sampled_from([7.0, 30.0]),
)
def test_peaks_are_those_of_counting(invocations: list[tuple[float, float]], period_s: float) -> None:
    """In each period, the most at any moment at which one arrives, or that reach into it."""
    invocations.sort()
    arrivals_s = np.array([arrival_s for arrival_s, _ in invocations])
    durations_s = np.array([duration_s for _, duration_s in invocations])
    found = peaks(arrivals_s, durations_s, period_s, 100.0)
    for number, most in enumerate(found.tolist()):
        start_s, end_s = number * period_s, (number + 1) * period_s
        moments = [start_s, *(arrival_s for arrival_s in arrivals_s if start_s <= arrival_s < end_s)]
        counts = [
            sum(1 for a, d in zip(arrivals_s, durations_s, strict=True) if a <= moment < a + d)
            for moment in moments
        ]
        assert most == max(counts)


def test_means_tell_minutes_without_an_arrival() -> None:
    """30 s of work in a minute are a mean of one half; -1 is not a data, as CloudWatch has none."""
    assert means(np.array([0.0, 5.0, 130.0]), np.array([10.0, 20.0, 6.0]), 240.0).tolist() == [
        0.5, -1.0, 0.1, -1.0,
    ]  # fmt: skip


# Pings.


def test_pings_hold_environments_that_would_expire() -> None:
    """A call every half hour is cold each time, and with one environment held only the pings ever are."""
    trace = as_trace(np.arange(1, 20) * 1800.0 + 60.0, ["f"], span_s=10 * HOUR_S)
    cold = play(trace, MEASURED, Scenario(1769, max_age_s=None, idle_expiry=IdleExpiry(600.0, 600.0)))
    held = play(trace, MEASURED, replace(cold.scenario, warm=1))
    assert (cold.summary.cold, held.summary.cold) == (19, 0)
    assert held.summary.invocations == 19
    # A round of the warmer every five minutes, with a ping unless a call has just kept the environment warm.
    assert held.usage.requests == 19 + 120 + (120 - 19)


def test_rounds_are_skipped_while_requests_keep_as_many_busy() -> None:
    """Two at once in the first five minutes: the second round pings nobody."""
    workload = Workload(np.array([10.0, 10.5]), np.full(2, 2.0, np.float32))
    pinged = with_pings(workload, steady(workload, 2, 900.0))
    assert pinged.workload.arrivals_s.tolist() == [0.0, 0.0, 10.0, 10.5, 600.0, 600.0]
    assert pinged.requests.tolist() == [False, False, True, True, False, False]


def test_pings_may_change_from_round_to_round() -> None:
    """Two in the first round, none in the second, one in the third, and each round asks CloudWatch once."""
    workload = Workload(np.array([10.0]), np.full(1, 2.0, np.float32))
    pinged = with_pings(workload, np.array([2, 0, 1]))
    assert pinged.workload.arrivals_s.tolist() == [0.0, 0.0, 10.0, 600.0]
    assert pinged.requests.tolist() == [False, False, True, False]
    assert pinged.calls_usd == pytest.approx(3 * 0.01 / 1000)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 6), max_size=60), st.sampled_from([1e-6, 1e-4]))
def test_expected_levels_are_the_warmer_s(needed: list[int], idle_usd: float) -> None:
    """Those that the warmer function would hold, for any costs, from one forecast."""
    expected, costs = Expectation(needed), HoldCosts(idle_usd, 0.001)
    assert expected.held(costs) == held_levels(needed, costs)
    assert expected.pinged(costs) == pinged_levels(needed, costs)


def test_what_is_predicted_is_learnt_from_the_past_alone() -> None:
    """A burst of twenty each noon: the first one meets nobody, and later ones are expected."""
    days, noon_s = 4, 12 * HOUR_S
    arrivals_s = np.concatenate([day * 24 * HOUR_S + noon_s + np.linspace(0, 30, 20) for day in range(days)])
    trace = as_trace(arrivals_s, ["f"], np.full(20 * days, 40.0), span_s=days * 24 * HOUR_S)
    field = Field(trace, MEASURED, US_EAST, "arm64", Scenario(1769), Goal(60_000.0, 1.0))
    predicted(field)
    by_setting = {candidate.setting: candidate for candidate in field.tried}
    dear, cheap = (
        next(one for name, one in by_setting.items() if "pings" in name and f", {worth} USD" in name)
        for worth in ("0.1", "0.0001")
    )
    assert dear.cold_share < cheap.cold_share
    assert dear.cold_share >= 1 / days  # those of the first noon
    assert any("provisioned" in name for name in by_setting)
    overrides = dict(override.split("=") for override in dear.overrides)
    assert (overrides["WarmPrediction"], overrides["ColdStartUsd"]) == ("on", "0.1")
    assert float(overrides["WarmUsdPerDay"]) > 0


# Provisioned concurrency that changes.


def test_timetable_changes_two_minutes_ahead_of_the_hour() -> None:
    """Levels are those that hold a share of the minutes of each hour."""
    by_minute = np.zeros(24 * 60, np.int64)
    by_minute[9 * 60 : 10 * 60] = 4
    levels = levels_by_hour(by_minute, 0.99)
    assert (levels[8], levels[9], levels[10]) == (0, 4, 0)
    changes = timetable(levels, 24 * HOUR_S)
    assert [(change.at_s, change.value) for change in changes] == [
        (9 * HOUR_S - 120.0, 4),
        (10 * HOUR_S - 120.0, 0),
    ]


def test_target_tracking_is_blind_to_short_bursts() -> None:
    """Two busy minutes change nothing; the third one does, in proportion to use."""
    assert target_tracking(np.array([2.0, 2.0, 0.1, 2.0, 2.0, 0.1]), 2, 10) == ()
    (change,) = target_tracking(np.array([2.0, 2.0, 2.0]), 2, 10)
    assert (change.at_s, change.value) == (180.0, 3)


def test_target_tracking_scales_in_after_a_quarter_of_an_hour_and_never_without_traffic() -> None:
    """No invocation is not a data, which ends no alarm's wait."""
    busy, quiet, silent = np.full(3, 2.0), np.full(15, 0.2), np.full(500, -1.0)
    values = [change.value for change in target_tracking(np.concatenate([busy, quiet]), 2, 10)]
    assert values == [3, 2]
    assert len(target_tracking(np.concatenate([busy, silent]), 2, 10)) == 1


# What is always on.


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.0, 50.0), st.floats(0.0, 9.0)), min_size=1, max_size=30), st.integers(1, 4)
)
def test_queue_serves_in_order_with_so_many_servers(
    invocations: list[tuple[float, float]], servers: int
) -> None:
    """Never more at once than servers, nobody overtakes, and nobody waits while a server is free."""
    invocations.sort()
    arrivals_s = np.array([arrival_s for arrival_s, _ in invocations])
    durations_s = np.array([duration_s for _, duration_s in invocations], np.float32)
    starts_s = arrivals_s + queue_waits(Workload(arrivals_s, durations_s), servers)
    assert (np.diff(starts_s) >= -1e-4).all()
    for number, start_s in enumerate(starts_s):
        ends_s = starts_s[:number] + durations_s[:number]
        busy = int((ends_s > start_s + 1e-4).sum())
        assert busy < servers
        if start_s > arrivals_s[number] + 1e-4:
            assert np.isclose(ends_s, start_s, atol=1e-3).any()


# Batches.


@settings(deadline=None)
@given(
    st.lists(st.floats(0.0, 30.0), min_size=1, max_size=60),
    st.integers(2, 6),
    st.sampled_from([0.5, 2.0, 9.0]),
)
def test_batches_are_full_or_as_old_as_the_window(arrivals: list[float], size: int, window_s: float) -> None:
    """Each request is in one batch, in order; a batch that is not full is invoked when its window is over."""
    arrivals_s = np.array(sorted(arrivals))
    found = batched(Workload(arrivals_s, np.full(len(arrivals_s), 0.25, np.float32)), size, window_s, 0.5)
    assert (np.diff(found.of) >= 0).all()
    assert (np.diff(found.workload.arrivals_s) >= 0).all()
    assert (found.gathered_s >= 0).all()
    for number, invoked_s in enumerate(found.workload.arrivals_s):
        mine = arrivals_s[found.of == number]
        full = len(mine) == size
        assert 1 <= len(mine) <= size
        assert invoked_s == (mine[-1] if full else mine[0] + window_s)
        assert mine[-1] <= mine[0] + window_s
        assert found.workload.durations_s[number] == 0.25 + 0.5 * (len(mine) - 1)


def test_requests_that_may_wait_share_invocations() -> None:
    """Batches win where the bound of p99 leaves time to gather them, and are not tried unless asked for."""
    trace = made(5.0, 2.0, "constant", seed=1)
    patient = Goal(p99_ms=8000.0, cold_share=0.01)
    planner = Planner(MEASURED, US_EAST, "arm64", patient, (1769,), Scenario(1769), 1769, further_ms=1.0)
    plan = planner.plan(trace)
    assert plan.winner is not None
    assert plan.winner.lever == "batches"
    assert 500.0 < plan.winner.p99_ms <= 8000.0
    assert plan.winner.month_usd < 0.5 * lever(plan, "on demand").month_usd
    hasty = replace(planner, goal=GOAL).plan(trace)
    for tried in (hasty, replace(planner, further_ms=None).plan(trace)):
        assert "batches" not in {verdict.candidate.lever for verdict in tried.verdicts}


# The plan.


def test_cheapest_that_holds_the_goal_wins() -> None:
    """Every other line costs more, or says what it misses; the first ones hold the goal."""
    plan = planned(read_trace(SAMPLE))
    assert plan.winner is plan.verdicts[0].candidate
    for verdict in plan.verdicts[1:]:
        if GOAL.holds(verdict.candidate):
            assert verdict.candidate.month_usd >= plan.winner.month_usd
            assert "USD a month more than" in verdict.why
        else:
            assert re.search(r"are borne|are asked for|throttled", verdict.why)
    assert {verdict.candidate.lever for verdict in plan.verdicts} == {
        "on demand", "pings", "provisioned", "scheduled", "target tracking", "predicted", "SnapStart",
        "managed instances", "MicroVMs", "container",
    }  # fmt: skip


def test_a_p99_of_few_requests_is_said() -> None:
    """A plan for fewer than 100 requests says that its p99 is the slowest of them."""
    few = planned(as_trace(np.arange(20) * 60.0, ["f"], span_s=3600.0))
    assert "the slowest of 20: p99 needs 100" in table(few)


def test_rare_calls_that_must_not_start_cold_are_held_by_pings() -> None:
    """A call each half hour, none cold: pings are the default lever, and provisioned costs more."""
    trace = as_trace(np.arange(1, 48) * 1800.0 + 60.0, ["f"], span_s=24 * HOUR_S)
    plan = planned(trace, Goal(300.0, 0.0), (1769,))
    assert plan.winner is not None
    assert plan.winner.lever == "pings"
    assert not GOAL.holds(lever(plan, "on demand"))
    assert lever(plan, "provisioned").month_usd > 50 * plan.winner.month_usd


def test_steady_heavy_traffic_goes_to_a_container() -> None:
    """At 200 requests a second a server that is always busy is cheaper than GB-seconds."""
    plan = planned(made(200.0, 0.5, "constant", seed=1), memories_mb=(1769,))
    assert plan.winner is not None
    assert plan.winner.lever == "container"


def test_provisioned_concurrency_is_the_least_that_holds() -> None:
    """One less would miss the goal."""
    goal = Goal(300.0, 0.002)
    trace = read_trace(SAMPLE)
    plan = planned(trace, goal, (1769,))
    count = int(lever(plan, "provisioned").setting)
    assert goal.holds(lever(plan, "provisioned"))
    below = play(trace, MEASURED, Scenario(1769, provisioned=count - 1)).summary
    assert count > 1
    assert below.cold_share > goal.cold_share


def test_no_lever_within_the_budget_says_so() -> None:
    """There is no winner, and no deployment is proposed."""
    plan = planned(read_trace(SAMPLE), Goal(300.0, 0.01, budget_usd=0.001), (1769,))
    assert plan.winner is None
    assert "over the budget" in plan.verdicts[0].why
    assert "No lever holds the goal" in table(plan)
    assert "sam deploy" not in table(plan)


def test_what_batches_hold_is_counted_by_request() -> None:
    """Of eight requests three are in a batch that is throttled; all others are cold, and p99 is theirs."""
    measured = assumed(1769, 1000.0, None, 800.0, 400.0)
    trace = as_trace([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], ["f"], span_s=60.0)
    base = Scenario(1769, account_concurrency=1)
    field = Field(trace, measured, US_EAST, "arm64", base, Goal(1500.0, 1.0), further_ms=1.0)
    batches(field)
    by_setting = {candidate.setting: candidate for candidate in field.tried}
    # Full at 0.4 s, and cold; the other three are gathered until 1.5 s, while it is under way.
    found = by_setting["5 within 1 s"]
    assert found.throttled_share == 3 / 8
    assert found.cold_share == 1.0
    assert found.p99_ms == pytest.approx(400.0 + 800.0 + 1004.0, abs=0.1)


def test_sizes_below_the_measured_peak_are_left_out() -> None:
    """A function that held 1500 MB is not planned with 1024; when no size is left, the error says so."""
    trace = read_trace(SAMPLE)
    base = Planner(
        replace(MEASURED, peak_mb=1500), US_EAST, "arm64", GOAL, (1024, 1769), Scenario(1769), 1769
    )
    assert {candidate.memory_mb for candidate in base.plan(trace).tried} == {1769, 2048}
    with pytest.raises(TraceUnusable, match="1500 MB at its peak"):
        replace(base, memories_mb=(1024,)).plan(trace)


@pytest.mark.parametrize(
    ("region", "architecture", "left_out"),
    [
        ("eu-central-1", "x86_64", {"SnapStart"}),
        ("eu-central-1", "arm64", {"SnapStart", "provisioned", "scheduled", "target tracking"}),
        ("ap-northeast-1", "arm64", {"provisioned", "scheduled", "target tracking"}),
        ("us-east-1", "x86_64", set()),
    ],
)
def test_levers_without_a_price_are_left_out(region: str, architecture: str, left_out: set[str]) -> None:
    """A region whose prices are known in part is planned with those, and nothing is guessed."""
    prices = load_prices().region(region)
    planner = Planner(MEASURED, prices, architecture, GOAL, (1769,), Scenario(1769), 1769)
    levers = {
        verdict.candidate.lever for verdict in planner.plan(made(0.1, 2.0, "constant", seed=1)).verdicts
    }
    everywhere = {"on demand", "pings", "provisioned", "scheduled", "target tracking", "SnapStart"}
    assert levers & everywhere == everywhere - left_out


def test_plan_is_for_one_function() -> None:
    """A trace of several is refused, with what to do."""
    with pytest.raises(TraceUnusable, match="`function`"):
        planned(as_trace([0.0, 1.0], ["a", "b"]))


@pytest.mark.parametrize(
    "name", ["on demand", "pings", "provisioned", "target tracking", "predicted", "SnapStart"]
)
def test_overrides_pass_the_checks_of_the_template(name: str, bundle: Path) -> None:
    """What a plan tells to deploy is what `coldframe check` lets through."""
    candidate = lever(planned(read_trace(SAMPLE), memories_mb=(1769,)), name)
    parameters = [argument for override in candidate.overrides for argument in ("--parameter", override)]
    result = CliRunner().invoke(main, ["check", *parameters])
    assert result.exit_code == 0, result.output


def test_scaled_traffic_has_the_same_shape() -> None:
    """A tenth and ten times as many requests, with the same share in each quarter of the day."""
    trace = made(0.5, 24.0, "diurnal", seed=1)
    quarters = np.bincount((trace.arrivals_s // (6 * HOUR_S)).astype(int), minlength=4) / len(trace)
    for scale in (0.1, 10.0):
        other = scaled(trace, scale, 0)
        assert len(other) == pytest.approx(len(trace) * scale, rel=0.05)
        shares = np.bincount((other.arrivals_s // (6 * HOUR_S)).astype(int), minlength=4)[:4] / len(other)
        assert shares.tolist() == pytest.approx(quarters.tolist(), abs=0.02)


def test_command_prints_a_table_json_and_a_page(tmp_path: Path) -> None:
    """The page has both curves and the sensitivity, and loads nothing from elsewhere."""
    page = tmp_path / "plan.html"
    common = ["plan", "--trace", str(SAMPLE), "--memory-mb", "1769"]
    shown = CliRunner().invoke(main, [*common, "--html", str(page)])
    assert shown.exit_code == 0, shown.output
    assert "sam deploy --parameter-overrides ColdStartMode=" in shown.output
    numbers = json.loads(CliRunner().invoke(main, [*common, "--json"]).stdout)
    assert numbers["winner"]["overrides"][0].startswith("ColdStartMode=")
    assert len(numbers["levers"]) == 9  # managed instances begin at 2 GB
    html = page.read_text()
    assert not re.search(r"<(script|link|img)|https?:|@import|url\(", html)
    for said in ("45 minutes", "requests a day", "every setting that was tried", "on demand  1769 MB: "):
        assert said in html
