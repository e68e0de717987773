"""Warmers side by side: their levels know no future, and their costs are sums."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe.warming.costs import COLD_USD
from coldframe.warming.policy import held_levels
from coldframe_bench.warming import forecasters, keeping
from coldframe_bench.warming.contest import BOUND, OURS, VARIANT, Contest
from coldframe_bench.warming.demand import Demand, demands, made_demands
from coldframe_bench.warming.fit import fit
from coldframe_bench.warming.on_lambda import Terms, outcomes
from coldframe_bench.warming.replay import replay, totals
from coldframe_bench.warming.rum import RATIOS, Ratio, score
from coldframe_local.cli import main
from coldframe_local.paths import ROOT
from coldframe_local.planner.scenarios.prices import load_prices
from coldframe_local.planner.traces.trace import TraceUnusable

SAMPLE = ROOT / "local" / "coldframe_local" / "planner" / "samples" / "office-day.csv"
NEEDS = st.lists(st.integers(0, 4), min_size=1, max_size=40)


def demand_of(needed: list[int], slot_s: float = 60.0) -> Demand:
    """A function with so many invocations at once in the middle of each slot."""
    counts = np.array(needed, np.int64)
    arrivals_s = np.repeat((np.arange(len(needed)) + 0.5) * slot_s, counts)
    by_minute = np.where(counts > 0, counts, -1.0)
    return Demand("one", counts, slot_s, arrivals_s, np.full(len(arrivals_s), 0.05, np.float32), by_minute)


@given(NEEDS, NEEDS)
@settings(max_examples=25, deadline=None)
def test_the_future_changes_no_level(past: list[int], future: list[int]) -> None:
    """Every policy but the bound decides from what was: only target tracking is told the highest need."""
    for ratio in RATIOS[:2]:
        alone = Contest(demand_of([4, *past]), 1.7).held(ratio)
        both = Contest(demand_of([4, *past, *future]), 1.7).held(ratio)
        for policy, levels in alone.items():
            if policy != BOUND:
                assert np.array_equal(both[policy][: len(levels)], levels), policy


@given(NEEDS)
@settings(max_examples=25, deadline=None)
def test_ours_is_what_the_warmer_would_do(needed: list[int]) -> None:
    """The replay reads the levels of every price off one pass; the policy makes one for each."""
    for ratio in RATIOS:
        costs = ratio.costs(1.7, 60.0)
        held = Contest(demand_of(needed), 1.7).held(ratio)[OURS]
        assert held.tolist() == held_levels(needed, costs, 60.0)


def test_a_cold_start_and_a_wasted_minute_cost_as_in_femux() -> None:
    """0.808 s of waiting, and GB-seconds over 99.69."""
    found = score(np.array([2, 0]), np.array([1, 1]), Ratio("RUM"), 2.0, 60.0)
    assert (found.cold, found.needed, found.wasted_gb_s) == (1, 2, 120.0)
    assert found.rum == pytest.approx(0.808 + 120 / 99.69)
    assert (found + found).rum == pytest.approx(2 * found.rum)


def test_kept_environments_serve_what_returns_in_time() -> None:
    """Two slots are bridged by keeping for two, and not for one."""
    needed = np.array([3, 0, 3, 0, 0])
    assert keeping.keep_alive(needed, 1).tolist() == [0, 3, 0, 3, 0]
    assert keeping.keep_alive(needed, 2).tolist() == [0, 3, 3, 3, 3]


def test_the_histogram_unloads_until_shortly_before_a_timer() -> None:
    """Shahrad's pre-warming: a timer of thirty minutes is warm from minute 27 on."""
    needed = np.array(([1] + [0] * 29) * 20)
    last = keeping.hybrid_histogram(needed)[-30:]
    assert last[1:27].sum() == 0
    assert last[27:].tolist() == [1, 1, 1]


def test_forecasts_follow_what_they_are_made_for() -> None:
    """A rhythm for AR and Markov, a constant for all of them."""
    rhythm = np.array([1, 0, 0, 2] * 60)
    assert forecasters.rounded(forecasters.autoregressive(rhythm))[-8:].tolist() == [1, 0, 0, 2] * 2
    assert forecasters.markov(rhythm)[-8:].tolist() == [1, 0, 0, 2] * 2
    constant = np.full(300, 5)
    for forecast in (
        forecasters.autoregressive,
        forecasters.threshold_autoregressive,
        forecasters.fourier,
        forecasters.smoothed,
        forecasters.markov,
    ):
        assert forecasters.rounded_up(forecast(constant))[-1] == 5, forecast


def test_ours_beats_every_published_policy_on_a_mixture_of_rhythms() -> None:
    """Two timers and noise, with a quarter of a day to learn."""
    source = np.random.default_rng(5)
    slots = np.arange(1440)
    needed = (slots % 7 == 0).astype(int) + (slots % 15 == 3) + (source.random(1440) < 0.02)
    found = totals(replay("made", [demand_of(needed.tolist())], 1769))
    for ratio in RATIOS:
        ours = found[OURS, ratio.name].rum
        rest = [s.rum for (policy, name), s in found.items() if name == ratio.name and policy != OURS]
        assert ours < 0.9 * min(rest)


def test_pings_that_are_predicted_cost_least_on_the_sample() -> None:
    """Cold starts at their worth included, beside as many at a fixed rate."""
    terms = Terms(1769, 0.625, load_prices().region("us-east-1"), "arm64", COLD_USD)
    found = {outcome.policy: outcome for outcome in outcomes(demands(SAMPLE, 300.0), terms)}
    price = {policy: outcome.usd + outcome.cold * COLD_USD for policy, outcome in found.items()}
    ours = price["pings: predicted (ours)"]
    assert ours < min(usd for policy, usd in price.items() if "fixed" in policy)
    assert ours < price["provisioned: target tracking"]
    assert len({outcome.requests for outcome in found.values()}) == 1


def test_a_table_of_containers_is_read(tmp_path: Path) -> None:
    """FeMux's form: a row for each application, a column for each minute, empty for none."""
    path = tmp_path / "containers.csv"
    path.write_text("app,memory_mb,invocations,1,2,3,4,5,6\na,140,4,0,1.2,,0,3,0\n")
    (minutes,) = demands(path, 60.0)
    assert minutes.peaks.tolist() == [0, 2, 0, 0, 3, 0]
    assert (minutes.memory_mb, len(minutes.arrivals_s), minutes.span_s) == (140, 5, 360.0)
    (slots,) = demands(path, 180.0)
    assert slots.peaks.tolist() == [2, 3]


def test_a_table_that_is_none_says_what_was_expected(tmp_path: Path) -> None:
    """A wrong cell, and a file that is not there."""
    path = tmp_path / "containers.csv"
    path.write_text("app,memory_mb,1\na,140,many\n")
    with pytest.raises(TraceUnusable, match="all numbers"):
        demands(path, 60.0)
    with pytest.raises(TraceUnusable, match="not a file"):
        demands(tmp_path / "none.csv", 60.0)


def test_weights_are_learnt_the_same_way_each_time() -> None:
    """The seed decides the order of the functions."""
    functions = [demand_of([1, 0, 0] * 40), demand_of([2, 0] * 60)]
    assert fit(functions, 1) == fit(functions, 1)


def test_the_command_replays_and_keeps_raw_lines(tmp_path: Path) -> None:
    """The table's sums are those of the raw lines."""
    raw = tmp_path / "warm.jsonl.gz"
    done = CliRunner().invoke(main, ["bench", "warm", "--replay", str(SAMPLE), "--usd", "--raw", str(raw)])
    assert done.exit_code == 0, done.output
    assert "ours / best published" in done.output
    assert "provisioned: target tracking" in done.output
    head, *lines = [json.loads(line) for line in gzip.decompress(raw.read_bytes()).splitlines()]
    assert head["benchmark"] == "warm"
    ours = [line for line in lines if line["policy"] == OURS]
    assert [line["ratio"] for line in ours] == [ratio.name for ratio in RATIOS]
    assert f"{ours[0]['score']['rum']:,.1f}" in done.output


def test_ours_costs_two_thirds_where_traffic_comes_and_goes() -> None:
    """Every price ratio, beside every published policy, on functions that nobody has tuned for."""
    found = totals(replay("on-off", made_demands("on-off", 60.0, 11)[1:4], 1769))
    for ratio in RATIOS:
        rest = [
            one.rum
            for (policy, name), one in found.items()
            if name == ratio.name and policy != OURS and not policy.endswith(VARIANT)
        ]
        assert found[OURS, ratio.name].rum <= 0.7 * min(rest)


def test_the_command_wants_a_trace() -> None:
    """Without one it says which options there are."""
    done = CliRunner().invoke(main, ["bench", "warm"])
    assert done.exit_code == 2
    assert "--replay" in done.output
