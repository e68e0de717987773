"""Cost of predictions: durations and memory measured here, prices of Lambda and from `prices.toml`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from coldframe.capacity.energy import Energy, energy_of
from coldframe.capacity.limits import VCPU
from coldframe.capacity.prices import PRICES as LAMBDA
from coldframe_bench.benchmarks.cold.first_requests import Subject, event_of
from coldframe_bench.benchmarks.cold.measure import one_sample
from coldframe_bench.benchmarks.cold.series import ANSWERED, Series
from coldframe_bench.data.texts import load_texts
from coldframe_bench.loader.samples import invoke
from coldframe_bench.records.quantiles import median
from coldframe_bench.records.raw_files import Fact, RawFile, Results, Timing
from coldframe_bench.records.tables import Row, table
from coldframe_bench.targets.machine import describe_run
from coldframe_local.paths import ROOT

PRICES = ROOT / "bench" / "coldframe_bench" / "data" / "prices.toml"
MEMORY_MB = (512, 1024, VCPU.value, 3008)
ARCHITECTURES = ("x86_64", "arm64")
_COLD_SAMPLES = 5
_WARM_UP = 10  # invocations: work done once in an environment does not belong to warm ones
_OURS = "coldframe"
_COMPUTED, _HIT, _COLD = "computed", "hit", "cold"
_PEAK_MB = "peak_mb"


class Container(Struct, frozen=True):
    """Per hour of one architecture."""

    vcpu_h: float
    gb_h: float


class Table(Struct, frozen=True):
    """Prices of the shared cache: of its units, and how many a text takes."""

    per_write_unit: float
    per_read_unit: float
    write_units: int
    read_units: int


class Assumed(Struct, frozen=True):
    """Assumptions that are not measured. provisioned_use: share of time in which an environment works."""

    table_lookup_ms: float
    table_write_ms: float
    provisioned_use: float
    container_gb: float


class Prices(Struct, frozen=True):
    """The file: what is priced beside Lambda itself."""

    source: dict[str, str]
    container: dict[str, Container]
    table: Table
    assumed: Assumed


@dataclass(frozen=True)
class Measured:
    """Milliseconds of invocations at one whole vCPU, and the memory that they need."""

    invocations_ms: Sequence[float]
    hits_ms: Sequence[float]
    cold_ms: float
    peak_mb: float


@dataclass(frozen=True)
class Cost:
    """One memory size on one architecture. USD per million, unless the name says otherwise.

    table_break_even: share of texts that must be in the shared table before asking it saves money;
    over 1 it never does. container_wins_rps: the rate from which one always-on container is cheaper.
    energy: of a thousand predictions that are computed.
    """

    architecture: str
    memory_mb: int
    mean_ms: float
    on_demand: float
    all_hits: float
    provisioned: float
    cold_starts: float
    snapstart_cold_starts: float
    snapstart_month_usd: float
    table_break_even: float
    container_wins_rps: float
    energy: Energy


def load_prices(path: Path = PRICES) -> Prices:
    """Prices, with their sources."""
    return msgspec.toml.decode(path.read_bytes(), type=Prices)


def run(model_dir: Path, out: Path, seed: int, texts: int) -> Path:
    """Measures invocations without and with the cache, and cold starts; returns the raw file."""
    mix = load_texts(texts, seed)
    facts = {"texts": texts, "source": mix.source}
    subject = Subject(model_dir)
    with RawFile(out, describe_run("cost", model_dir, seed, facts)) as raw:
        for what, cache, before in ((_COMPUTED, False, mix.texts[:_WARM_UP]), (_HIT, True, mix.texts)):
            events = [event_of({"text": text, "cache": cache}) for text in (*before, *mix.texts)]
            times, peak = invoke(events, subject.environ())
            for ms in times[len(before) :]:  # all hits are in memory by then
                raw.write(Timing(_OURS, {"what": what}, ms))
            raw.write(Fact(_PEAK_MB, what, peak))
        for _ in range(_COLD_SAMPLES):
            for series in ANSWERED:
                raw.write(Timing(series, {"what": _COLD}, one_sample(subject, series).total_ms))
    return out


def costs(measured: Measured, prices: Prices) -> list[Cost]:
    """Every memory size that is large enough, on both architectures, which are taken to be equally fast."""
    return [
        _cost(measured, prices, architecture, memory_mb)
        for architecture in ARCHITECTURES
        for memory_mb in MEMORY_MB
        if memory_mb >= measured.peak_mb
    ]


def _cost(measured: Measured, prices: Prices, architecture: str, memory_mb: int) -> Cost:
    rates = LAMBDA[architecture]
    container, table, assumed = prices.container[architecture], prices.table, prices.assumed
    gb, slower = memory_mb / 1024, max(1.0, VCPU.value / memory_mb)
    computed_s, hit_s = (_billed_s(times, slower) for times in (measured.invocations_ms, measured.hits_ms))
    usd_per_s = gb * rates.on_demand_gb_s_usd
    on_demand = computed_s * usd_per_s + rates.request_usd
    warm = rates.provisioned_gb_s_usd / assumed.provisioned_use + rates.provisioned_duration_gb_s_usd
    lookup = table.read_units * table.per_read_unit + assumed.table_lookup_ms / 1e3 * usd_per_s
    write = table.write_units * table.per_write_unit + assumed.table_write_ms / 1e3 * usd_per_s
    compute = computed_s * usd_per_s
    hour = container.vcpu_h + assumed.container_gb * container.gb_h
    return Cost(
        architecture=architecture,
        memory_mb=memory_mb,
        mean_ms=computed_s * 1e3,
        on_demand=on_demand * 1e6,
        all_hits=(hit_s * usd_per_s + rates.request_usd) * 1e6,
        provisioned=(computed_s * gb * warm + rates.request_usd) * 1e6,
        # The init phase has about a whole vCPU whatever the memory size, and is billed.
        cold_starts=measured.cold_ms / 1e3 * usd_per_s * 1e6,
        snapstart_cold_starts=rates.snapstart_restore_gb_usd * gb * 1e6,
        snapstart_month_usd=rates.snapstart_cache_gb_s_usd * gb * 30 * 86_400,
        table_break_even=(lookup + write) / (compute + write),
        container_wins_rps=hour / 3600 / on_demand,
        energy=energy_of(computed_s * gb * 1e3),
    )


def _billed_s(times_ms: Sequence[float], slower: float) -> float:
    """Mean billed duration: Lambda rounds each invocation up to a millisecond."""
    return sum(math.ceil(ms * slower) for ms in times_ms) / len(times_ms) / 1e3


def cost_table(results: Results) -> str:
    """USD per million on every memory size; what was assumed is in bench/coldframe_bench/data/prices.toml."""
    prices = load_prices()
    head = "architecture | MB | billed, ms | on demand | every text a cache hit | provisioned,"
    head += f" {prices.assumed.provisioned_use:.0%} in use | cold starts | SnapStart's cold starts"
    head += " | SnapStart, a month | table pays from | container wins from | energy of a thousand"
    rows: list[Row] = []
    for cost in costs(measured_costs(results), prices):
        usd = [cost.on_demand, cost.all_hits, cost.provisioned]
        usd += [cost.cold_starts, cost.snapstart_cold_starts, cost.snapstart_month_usd]
        pays = f"{cost.table_break_even:.0%} hits" if cost.table_break_even <= 1 else "never"
        size = (cost.architecture, str(cost.memory_mb), f"{cost.mean_ms:.1f}")
        wins = f"{cost.container_wins_rps:.0f} /s"
        rows.append((*size, *(f"{price:.2f}" for price in usd), pays, wins, str(cost.energy)))
    return table(head, rows)


def measured_costs(results: Results) -> Measured:
    """Durations that the prices apply to. cold_ms: cold starts with texts that need the encoder."""
    return Measured(
        invocations_ms=results.timings_ms(_OURS, what=_COMPUTED),
        hits_ms=results.timings_ms(_OURS, what=_HIT),
        cold_ms=median(results.timings_ms(Series.ENCODER, what=_COLD)).value,
        peak_mb=max(fact.value or 0.0 for fact in results.of(Fact) if fact.name == _PEAK_MB),
    )
