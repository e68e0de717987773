"""A scenario's numbers: counts, percentiles, USD."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner, Result

from coldframe.capacity.idle_expiry import IdleExpiry
from coldframe.capacity.prices import PRICES, Bill
from coldframe_bench.benchmarks.cost import load_prices as bench_prices
from coldframe_local.cli import main
from coldframe_local.commands.scenario_settings import Settings
from coldframe_local.planner.scenarios.prices import MONTH_S, LambdaPrices, PricesUnusable, Tier, load_prices
from coldframe_local.planner.scenarios.scenario import Scenario, play, table
from coldframe_local.planner.scenarios.timings import (
    PUBLISHED,
    assumed,
    of_benchmark,
    published,
    read_bench_cost,
)
from coldframe_local.planner.simulator.provisioning import PROVISION
from coldframe_local.planner.simulator.simulator import Change
from coldframe_local.planner.traces.trace import TraceUnusable, as_trace
from tests.conftest import ROOT

SAMPLE = ROOT / "local" / "coldframe_local" / "planner" / "samples" / "office-day.csv"
US_EAST = load_prices().regions["us-east-1"]
MEASURED = assumed(1769, 8.0, None, 500.0, 300.0)
TEN_MINUTES = IdleExpiry(600.0, 600.0)


def test_cold_calls_wait_and_are_billed_with_their_init_phase() -> None:
    """Calls 20 minutes apart are all cold: 508 ms each, as the emulator's bill has it."""
    trace = as_trace(np.arange(3) * 1200.0, ["f"], span_s=3600.0)
    played = play(trace, MEASURED, Scenario(1769, idle_expiry=TEN_MINUTES))
    assert (played.summary.cold, played.environments) == (3, 3)
    assert played.summary.p99_ms == pytest.approx(508.0)
    bill = Bill("arm64", 0.0)
    for _ in range(3):
        bill.invocation(508, 1769, provisioned=False)
    assert played.month_usd(US_EAST, "arm64") == pytest.approx(bill.usd(3600.0) * 730)


def test_provisioned_concurrency_is_paid_for_the_whole_time() -> None:
    """One environment for an hour, its init phase, and three warm calls at the lower price of duration."""
    trace = as_trace(np.arange(3) * 1200.0 + 60.0, ["f"], span_s=3600.0)
    played = play(trace, MEASURED, Scenario(1769, provisioned=1, idle_expiry=TEN_MINUTES))
    assert (played.summary.cold, played.summary.provisioned) == (0, 3)
    bill = Bill("arm64", 0.0)
    bill.provision(1, 1769, 0.0)
    bill.provisioned_init(500.0, 1769)
    for _ in range(3):
        bill.invocation(8, 1769, provisioned=True)
    assert played.month_usd(US_EAST, "arm64") == pytest.approx(bill.usd(3600.0) * 730)


@pytest.mark.parametrize(
    ("levels", "billed_s"),
    [
        (((60.0, 1), (90.0, 0)), 300),
        (((60.0, 1), (360.0, 0)), 300),
        (((60.0, 1), (361.0, 0)), 600),
        (((60.0, 2), (90.0, 1), (400.0, 0)), 300 + 600),
        (((3000.0, 1),), 600),
    ],
    ids=["half a minute", "five minutes", "a second more", "one given up earlier", "kept to the end"],
)
def test_provisioned_concurrency_is_rounded_up(levels: tuple[tuple[float, int], ...], billed_s: int) -> None:
    """An environment that is provisioned is paid for in steps of five minutes, as AWS's price list says."""
    trace = as_trace(np.array([3599.0]), ["f"], span_s=3600.0)
    changes = tuple(Change(at_s, PROVISION, 0, level) for at_s, level in levels)
    played = play(trace, MEASURED, Scenario(1024, changes=changes, idle_expiry=TEN_MINUTES))
    assert played.usage.provisioned_gb_s == billed_s


@pytest.mark.parametrize(("count", "note"), [(99, " (the slowest of 99: p99 needs 100)"), (100, "")])
def test_a_p99_of_few_requests_is_called_their_slowest(count: int, note: str) -> None:
    """Fewer than 100 values have no p99 below their maximum, and the table says so."""
    trace = as_trace(np.arange(count) * 10.0, ["f"], span_s=3600.0)
    played = play(trace, MEASURED, Scenario(1769, idle_expiry=TEN_MINUTES))
    line = next(line for line in table(played, US_EAST, "arm64").splitlines() if line.startswith("p50, p99"))
    assert line.partition(" ms, ")[2].partition(" ms")[2] == note


def test_restores_are_charged_by_size() -> None:
    """Three restores, the snapshot for a month, and warm durations alone."""
    trace = as_trace(np.arange(3) * 1200.0, ["f"], span_s=3600.0)
    played = play(trace, MEASURED, Scenario(1024, snapstart=True, idle_expiry=TEN_MINUTES))
    duration_s = np.ceil(8.0 * 1769 / 1024) / 1e3
    prices = PRICES["arm64"]
    call_usd = prices.request_usd + duration_s * prices.on_demand_gb_s_usd + prices.snapstart_restore_gb_usd
    expected = 3 * 730 * call_usd + MONTH_S * prices.snapstart_cache_gb_s_usd
    assert played.summary.restored == 3
    assert played.month_usd(US_EAST, "arm64") == pytest.approx(expected)


def test_benchmark_of_this_machine_is_a_source_of_timings() -> None:
    """The published raw file of `bench cost` tells durations at one vCPU, init phases and peak memory."""
    measured = of_benchmark(ROOT / "bench" / "published" / "cost.jsonl.gz")
    timings = measured.at(1769)
    assert len(timings.durations_s) >= 300
    assert 0.0 < np.median(timings.durations_s) < np.median(timings.inits_s)
    assert measured.peak_mb > 100
    with pytest.raises(TraceUnusable, match="not a raw file"):
        of_benchmark(SAMPLE)


def test_published_timings_are_those_of_the_raw_file() -> None:
    """What a plan uses unless told otherwise is Coldframe's own, measured and published with its raw file."""
    raw = ROOT / "bench" / "published" / "cost.jsonl.gz"
    assert PUBLISHED.read_text() == read_bench_cost(raw).json()
    own, measured = published(997.0), of_benchmark(raw)
    assert own.at(1769) == replace(measured.at(1769), restores_s=(0.997,))
    assert own.peak_mb == measured.peak_mb


@pytest.mark.parametrize("command", ["plan", "simulate", "homes", "bench warm"])
def test_commands_say_whose_durations_they_use(command: str) -> None:
    """Each command prints where its durations come from, with the machine that they were measured on."""
    arguments = {"homes": [], "bench warm": ["--made", "constant", "--usd", "--slot-s", "3600"]}
    traffic = ["--rps", "0.01", "--hours", "1"] + ["--memory-mb", "1769"] * (command == "plan")
    done = CliRunner().invoke(main, [*command.split(), *arguments.get(command, traffic)])
    assert done.exit_code == 0, done.output
    assert re.search("Coldframe's own.*(1769 MB|docs/encoder.md)", done.stdout)


def test_given_durations_take_the_place_of_the_published() -> None:
    """What a user says counts; the rest stays Coldframe's own."""
    own = published(997.0)
    init_ms = float(np.median(own.at(1769).inits_s)) * 1e3
    given = own.instead(12.0, None, None)
    assert given.at(1769).durations_s == (0.012,)
    assert given.at(1769).inits_s == pytest.approx((init_ms / 1e3,))
    assert given.source == f"12 ms warm, {init_ms:.0f} ms of init at 1769 MB"
    assert own.instead(None, None, 600.0).at(1769).inits_s == (0.6,)


def test_init_phases_have_a_source_of_their_own() -> None:
    """A trace with durations and without init phases says that these come from elsewhere."""
    shown = CliRunner().invoke(main, ["simulate", "--trace", str(SAMPLE)]).stdout
    assert "the trace's; init phases: Coldframe's own" in shown


def test_tiers_lower_the_price_of_what_is_above_them() -> None:
    """10 at full price, 10 at 90 %, the rest at half."""
    prices = LambdaPrices(2.0, 0.0, 0.0, (Tier(10.0, 0.9), Tier(20.0, 0.5)))
    assert prices.on_demand_usd(5.0) == 10.0
    assert prices.on_demand_usd(30.0) == pytest.approx(20.0 + 18.0 + 10.0)


def test_prices_are_those_of_the_other_files() -> None:
    """What the emulator bills and what benchmarks quote stand here again, and are the same."""
    for architecture, prices in PRICES.items():
        mine = US_EAST.lambda_[architecture]
        assert mine.on_demand_gb_s_usd == prices.on_demand_gb_s_usd
        assert mine.provisioned_gb_s_usd == prices.provisioned_gb_s_usd
        assert mine.provisioned_duration_gb_s_usd == prices.provisioned_duration_gb_s_usd
        assert US_EAST.request_usd == prices.request_usd
        assert US_EAST.snapstart_cache_gb_s_usd == prices.snapstart_cache_gb_s_usd
        assert US_EAST.snapstart_restore_gb_usd == prices.snapstart_restore_gb_usd
        container = bench_prices().container[architecture]
        assert US_EAST.container[architecture].vcpu_h_usd == container.vcpu_h
        assert US_EAST.container[architecture].gb_h_usd == container.gb_h


def test_unknown_price_is_an_error_only_for_who_needs_it() -> None:
    """On demand is known everywhere; SnapStart in Frankfurt is not, and says how to tell it."""
    frankfurt, trace = load_prices().region("eu-central-1"), as_trace([1.0, 2.0], ["f"], span_s=60.0)
    measured = assumed(1769, 8.0, None, 800.0, 400.0)
    assert play(trace, measured, Scenario(1769)).month_usd(frankfurt, "arm64") > 0
    with pytest.raises(PricesUnusable, match="price_file"):
        play(trace, measured, Scenario(1769, snapstart=True)).month_usd(frankfurt, "arm64")


def test_every_price_has_a_source_and_a_day() -> None:
    """A region that names no source has the file's."""
    prices = load_prices()
    for name, region in prices.regions.items():
        assert region.read or name == "us-east-1"
        for source in filter(None, region.source.split(", ")):
            assert prices.sources[source].startswith("https://")


def test_old_prices_warn(tmp_path: Path) -> None:
    """After 90 days the warning names the day and the refresh; a region without prices is refused."""
    prices = load_prices()
    read = prices.read
    assert prices.stale(read + timedelta(days=90), "us-east-1") == ""
    late = prices.stale(read + timedelta(days=91), "us-east-1")
    assert str(read) in late and "coldframe prices --refresh" in late
    with pytest.raises(PricesUnusable, match="us-east-1"):
        prices.region("mars-north-1")


def test_simulate_prints_a_table_and_json() -> None:
    """The same numbers for people and for programs; engines agree."""
    shown = CliRunner().invoke(main, ["simulate", "--trace", str(SAMPLE)])
    assert shown.exit_code == 0, shown.output
    numbers = simulated("engine = 'python'")
    assert numbers == simulated("engine = 'numba'")
    assert f"{numbers['invocations']:,} in 24.0 h" in shown.output
    assert f"{numbers['cold']:,} (" in shown.output
    assert 0 < numbers["cold"] == numbers["environments"]


def test_reserved_concurrency_is_an_option() -> None:
    """One environment at a time refuses bursts; the reason is AWS's."""
    throttled = simulated(options=("--reserved", "1"))["throttled"]
    assert "ReservedFunctionConcurrentInvocationLimitExceeded" in throttled


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Name one of --trace"),
        (["--rps", "1", "--trace", str(SAMPLE)], "Name one of --trace"),
        (["--rps", "1", "--provisioned", "1", "--snapstart"], "exclude each other"),
    ],
)
def test_contradictions_are_refused(arguments: list[str], said: str) -> None:
    """Each with what to do."""
    result = CliRunner().invoke(main, ["simulate", *arguments])
    assert result.exit_code != 0
    assert said in result.output


# Versions with weights, failures and changes.


def simulate(scenario: str, *options: str) -> Result:
    """`coldframe simulate` of the sample with a scenario file."""
    with NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(scenario)
        file.flush()
        command = ["simulate", "--trace", str(SAMPLE), "--scenario", file.name, "--json", *options]
        return CliRunner().invoke(main, command)


def simulated(scenario: str = "", options: tuple[str, ...] = ()) -> dict[str, Any]:
    """Figures of a scenario."""
    result = simulate(scenario, *options)
    assert result.exit_code == 0, result.output
    figures: dict[str, Any] = json.loads(result.stdout)
    return figures


def test_version_with_a_small_weight_is_cold_more_often() -> None:
    """One in twenty requests goes to the canary, whose environments expire in between."""
    found = simulated("versions = {stable = 19, canary = 1}\nidle_expiry_min = [5, 5]")
    stable, canary = found["versions"]["stable"], found["versions"]["canary"]
    assert stable["invocations"] + canary["invocations"] == found["invocations"]
    assert canary["invocations"] == pytest.approx(found["invocations"] / 20, rel=0.4)
    assert canary["cold"] / canary["invocations"] > 3 * stable["cold"] / stable["invocations"]
    assert stable["cold"] + canary["cold"] == found["cold"]


def test_lost_environments_start_again() -> None:
    """If every invocation loses its environment, every one is cold."""
    assert simulated("crash_share = 1")["cold"] == simulated()["invocations"]
    assert simulated()["cold"] < simulated("crash_share = 0.2")["cold"] < simulated()["invocations"]


def test_changes_happen_in_the_course_of_time() -> None:
    """Nothing is admitted while nothing may be, new code starts cold, and what is provisioned serves."""
    closed = "[[changes]]\nat_s = 0\nreserved_concurrency = 0\n"
    opened = "[[changes]]\nat_s = 1\nreserved_concurrency = 'none'\n"
    assert simulated(closed)["cold_share"] == 0.0
    assert simulated(closed)["throttled_share"] == 1.0
    later = "changes = [{at_s = 43200, %s}]"
    assert 0.0 < simulated(later % "reserved_concurrency = 0")["throttled_share"] < 1.0
    assert list(simulated(closed + opened)["throttled"].values()) == [1]
    assert simulated(later % "deploy = true")["cold"] > simulated()["cold"]
    provisioned = simulated(later % "provisioned_concurrency = 2")["provisioned"]
    assert 0 < provisioned < simulated()["invocations"]


def test_pings_hold_environments() -> None:
    """As the planner has them: fewer cold starts, and a little more money than none."""
    held, alone = simulated("pings = 2"), simulated()
    assert held["invocations"] == alone["invocations"]
    assert held["cold"] < alone["cold"]


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ("idle_expiry_min = [9, 5]", "Put the smaller number first"),
        ("region = 'mars-north-1'", "There are no prices of mars-north-1"),
        ("versions = {a = 0}", "All weights of versions are 0"),
        ("versions = {a = inf}", "versions = {'a': inf} cannot be used. Expected `float`"),
        ("versions = {a = 1, b = 1}\nprovisioned_concurrency = 1", "alias with weights"),
        ("changes = [{at_s = 5, explode = true}]", "unknown field `explode`"),
        ("changes = [{at_s = 5, provisioned_concurrency = 'many'}]", "got `str`"),
        ("pings = 1\ncrash_share = 0.5", "pings are for one version"),
        ("memory = 512", ".toml: memory is not a setting. Use memory_mb"),
        ("memory_mb = 64", ".toml: memory_mb = 64 cannot be used. Expected `int` >= 128"),
        ("shape = wave", ".toml is not TOML: "),
    ],
)
def test_what_cannot_be_is_refused(scenario: str, said: str) -> None:
    """With what was found and expected."""
    result = simulate(scenario)
    assert result.exit_code in (1, 2)
    assert said in " ".join(result.output.split())


def test_options_override_the_file() -> None:
    """An option is checked like the file's value, and wins over it, also with 0."""
    assert simulated("reserved_concurrency = 0")["throttled_share"] == 1.0
    assert simulated("reserved_concurrency = 0", ("--reserved", "9"))["throttled_share"] == 0.0
    assert simulated("reserved_concurrency = 9", ("--reserved", "0"))["throttled_share"] == 1.0
    refused = simulate("", "--reserved", "-1")
    assert refused.exit_code == 2
    assert "reserved_concurrency = '-1' cannot be used. Expected `int` >= 0" in " ".join(
        refused.output.split()
    )


def test_printed_scenario_is_the_schema() -> None:
    """`plan --print-scenario` has every setting once with its default; each example can be used."""
    shown = CliRunner().invoke(main, ["plan", "--print-scenario"]).stdout
    examples = re.sub(r"^#(?=\w)", "", shown, flags=re.MULTILINE)
    assert list(tomllib.loads(examples)) == list(Settings.__struct_fields__)
    assert msgspec.convert(tomllib.loads(examples), Settings) != Settings()
    defaults = tomllib.loads(shown)
    assert msgspec.convert(defaults, Settings) == Settings()
    unset = {name for name in Settings.__struct_fields__ if getattr(Settings(), name) is None}
    assert set(Settings.__struct_fields__) - defaults.keys() == unset
