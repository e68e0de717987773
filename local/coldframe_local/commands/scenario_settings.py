"""Settings of a scenario. `scenario.toml` beside this module says what each of them means."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click
from msgspec import Meta, Struct

from coldframe.capacity import limits
from coldframe.capacity.idle_expiry import IdleExpiry
from coldframe.capacity.switches import Switches
from coldframe_local.emulator.lambda_service.settings import RESTORE_MS

if TYPE_CHECKING:
    from coldframe_local.planner.scenarios.prices import RegionPrices
    from coldframe_local.planner.scenarios.scenario import Scenario
    from coldframe_local.planner.scenarios.timings import Measured
    from coldframe_local.planner.traces.trace import Trace

_Count = Annotated[int, Meta(ge=0)]
_Number = Annotated[float, Meta(ge=0, lt=1e12)]
_Positive = Annotated[float, Meta(gt=0, lt=1e12)]
_Share = Annotated[float, Meta(ge=0, le=1)]
_Mb = Annotated[int, Meta(ge=limits.MIN_MEMORY.value, le=limits.MEMORY.value)]


class TimedChange(Struct, frozen=True, forbid_unknown_fields=True):
    """A change of every function, `at_s` seconds after the start."""

    at_s: _Number
    provisioned_concurrency: _Count | None = None
    reserved_concurrency: _Count | Literal["none"] | None = None
    deploy: bool = False


class Settings(Struct, frozen=True, kw_only=True):
    """All settings of a scenario, with their defaults."""

    trace: str | None = None
    trace_durations: str | None = None
    function: str | None = None
    from_cloudwatch: str | None = None
    days: Annotated[int, Meta(ge=1, le=15)] = 14
    rps: _Positive | None = None
    shape: Literal["constant", "diurnal", "bursts", "on-off"] = "constant"
    hours: Annotated[float, Meta(gt=0, le=24 * 31)] = 24.0
    burst: Annotated[int, Meta(ge=1)] = 50
    seed: int = 0
    reports: tuple[str, ...] = ()
    bench_cost: str | None = None
    duration_ms: _Positive | None = None
    duration_p99_ms: _Positive | None = None
    init_ms: _Positive | None = None
    restore_ms: _Number = RESTORE_MS
    memory_mb: _Mb | None = None
    provisioned_concurrency: _Count | None = None
    reserved_concurrency: _Count | None = None
    snapstart: bool | None = None
    idle_expiry_min: tuple[_Number, _Number] = (5.0, 45.0)
    max_age_h: _Number = limits.MAX_AGE.value / 3600
    crash_share: _Share = 0.0
    pings: _Count = 0
    engine: Literal["auto", "python", "numba"] = "auto"
    account_concurrency: Annotated[int, Meta(ge=1, le=100_000)] = limits.CONCURRENCY.value
    request_rate: bool = True
    scaling_rate: bool = True
    allocation_rate: bool = True
    architecture: Literal["arm64", "x86_64"] = "arm64"
    region: str = "us-east-1"
    price_file: str | None = None
    p99_ms: Annotated[float, Meta(ge=1)] = 300.0
    cold_share: _Share = 0.01
    budget_usd: _Number | None = None
    sizes_mb: Annotated[tuple[_Mb, ...], Meta(min_length=1)] = (512, 1024, limits.VCPU.value, 3008)
    traced_memory_mb: _Mb = limits.VCPU.value
    further_ms: _Number | None = None
    timeout_s: Annotated[float, Meta(ge=0.1, le=limits.TIMEOUT.value)] | None = None
    cpu_from_memory: bool = False
    keep_alive_s: _Positive | None = None
    stores: bool = True
    dynamodb_endpoint: str | None = None
    s3_endpoint: str | None = None
    sqs_endpoint: str | None = None
    schedules: bool = True
    event_source_mappings: bool = True
    versions: dict[Annotated[str, Meta(min_length=1)], _Number] | None = None
    changes: tuple[TimedChange, ...] | None = None

    def arrivals(self) -> Trace:
        """Trace to simulate. Raises click.UsageError unless one source is named, and TraceUnusable."""
        sources = [source for source in (self.trace, self.from_cloudwatch, self.rps) if source]
        if len(sources) != 1:
            raise click.UsageError("Name one of --trace FILE, --from-cloudwatch NAME and --rps RATE.")
        if self.trace:
            from coldframe_local.planner.traces.read import read_trace

            durations = Path(self.trace_durations) if self.trace_durations else None
            return read_trace(Path(self.trace), function=self.function, durations=durations, seed=self.seed)
        if self.from_cloudwatch:
            from coldframe_local.planner.traces.cloudwatch import from_cloudwatch

            return from_cloudwatch(self.from_cloudwatch, self.days, self.seed)
        from coldframe_local.planner.traces.made import made

        return made(self.rps or 0.0, self.hours, self.shape, self.seed, self.burst)

    def measured(self) -> Measured:
        """Durations of invocations and of init phases."""
        from coldframe_local.planner.scenarios.timings import of_benchmark, of_reports, published

        if self.reports:
            return of_reports([Path(name) for name in self.reports])
        if self.bench_cost:
            return of_benchmark(Path(self.bench_cost))
        own = published(self.restore_ms)
        figures = (self.duration_ms, self.duration_p99_ms, self.init_ms)
        return own.instead(*figures) if any(figures) else own

    def prices(self) -> RegionPrices:
        """Prices of the region; old ones get a warning on standard error. Raises PricesUnusable."""
        from coldframe_local.planner.scenarios.prices import PRICES, load_prices

        prices = load_prices(Path(self.price_file) if self.price_file else PRICES)
        region = prices.region(self.region, self.architecture)
        if warning := prices.stale(datetime.now(UTC).date(), self.region):
            click.echo(warning, err=True)
        return region

    def scenario(self, memory_mb: int) -> Scenario:
        """Limits of the account and lives of environments, as the simulator takes them."""
        from coldframe_local.planner.scenarios.scenario import Scenario

        return Scenario(
            memory_mb,
            account_concurrency=self.account_concurrency,
            idle_expiry=self.idle_expiry(),
            max_age_s=self.max_age_s(),
            switches=self.switches(),
            seed=self.seed,
        )

    def idle_expiry(self) -> IdleExpiry:
        """Range of idle times. Raises click.UsageError."""
        least, most = self.idle_expiry_min
        if most < least:
            raise click.UsageError(f"idle_expiry_min is [{least:g}, {most:g}]. Put the smaller number first.")
        return IdleExpiry(least * 60.0, most * 60.0)

    def max_age_s(self) -> float | None:
        """Longest life of an environment; None: no limit."""
        return self.max_age_h * 3600.0 or None

    def switches(self) -> Switches:
        """Rates that are enforced."""
        return Switches(self.request_rate, self.scaling_rate, self.allocation_rate)

    def endpoints(self) -> tuple[str | None, str | None, str | None]:
        """Addresses of DynamoDB, S3 and SQS; None: in memory."""
        return (
            self.dynamodb_endpoint or os.environ.get("AWS_ENDPOINT_URL_DYNAMODB") or None,
            self.s3_endpoint or os.environ.get("AWS_ENDPOINT_URL_S3") or None,
            self.sqs_endpoint or os.environ.get("AWS_ENDPOINT_URL_SQS") or None,
        )
