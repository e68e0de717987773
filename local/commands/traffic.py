"""Options of commands that simulate: which traffic, which function, which prices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from coldframe.capacity import limits
from local.lambda_service.settings import RESTORE_MS

if TYPE_CHECKING:
    from local.planning.prices import RegionPrices
    from local.planning.timings import Measured
    from local.planning.traces.trace import Trace

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_SHAPES = ("constant", "diurnal", "bursts", "on-off")
# LambdaNER-Bench, 2026-10: DistilBERT in int8 as an arm64 image of 1769 MB; all that a caller waited with
# SnapStart of the same as a zip.
_DURATION_MS, _INIT_MS, _RESTORE_MS, _MEMORY_MB = 7.7, 625.0, RESTORE_MS, limits.VCPU.value

_TRACE = (
    click.option("--trace", "file", type=_FILE, help="A CSV file of arrivals, or a log with REPORT lines."),
    click.option(
        "--durations", type=_FILE, help="Of an Azure trace of 2019: its file of duration percentiles."
    ),
    click.option("--function", help="Only this function of the trace.  [default: all of them]"),
    click.option("--from-cloudwatch", metavar="NAME", help="The traffic of a function that runs on AWS."),
    click.option(
        "--days", default=14, show_default=True, type=click.IntRange(1, 15), help="Of CloudWatch's metrics."
    ),
    click.option("--rps", type=click.FloatRange(0, min_open=True), help="Make a trace of this mean rate."),
    click.option("--shape", default="constant", show_default=True, type=click.Choice(_SHAPES)),
    click.option(
        "--hours", default=24.0, show_default=True, type=click.FloatRange(0, 24 * 31, min_open=True)
    ),
    click.option(
        "--burst", default=50, show_default=True, type=click.IntRange(1), help="Requests of a burst."
    ),
    click.option("--seed", default=0, show_default=True, type=int),
)
_TIMINGS = (
    click.option(
        "--reports", multiple=True, type=_FILE, help="A log whose REPORT lines tell durations by memory size."
    ),
    click.option(
        "--bench-cost", type=_FILE, help="A raw file of `coldframe bench cost`: what was measured here."
    ),
    click.option("--duration-ms", default=_DURATION_MS, show_default=True, type=click.FloatRange(0.1)),
    click.option("--duration-p99-ms", type=click.FloatRange(0.1), help="[default: all last equally long]"),
    click.option("--init-ms", default=_INIT_MS, show_default=True, type=click.FloatRange(1.0)),
    click.option("--restore-ms", default=_RESTORE_MS, show_default=True, type=click.FloatRange(1.0)),
)
_PRICED = (
    click.option(
        "--architecture", default="arm64", show_default=True, type=click.Choice(("arm64", "x86_64"))
    ),
    click.option("--region", default="us-east-1", show_default=True),
    click.option("--prices", "price_file", type=_FILE, help="A file of prices.  [default: the project's]"),
)


def traffic_options(command: F) -> F:
    """Adds them all; the command gets them as keywords, and hands them to `Traffic`."""
    for option in reversed((*_TRACE, *_TIMINGS, *_PRICED)):
        command = option(command)
    return command


@dataclass(frozen=True)
class Traffic:
    """The options as they were given."""

    file: Path | None
    durations: Path | None
    function: str | None
    from_cloudwatch: str | None
    days: int
    rps: float | None
    shape: str
    hours: float
    burst: int
    seed: int
    reports: tuple[Path, ...]
    bench_cost: Path | None
    duration_ms: float
    duration_p99_ms: float | None
    init_ms: float
    restore_ms: float
    architecture: str
    region: str
    price_file: Path | None

    def trace(self) -> Trace:
        """The traffic. Raises click.UsageError unless exactly one source is named, and TraceUnusable."""
        named = [option for option in (self.file, self.from_cloudwatch, self.rps) if option is not None]
        if len(named) != 1:
            raise click.UsageError("Name one of --trace FILE, --from-cloudwatch NAME and --rps RATE.")
        if self.file is not None:
            from local.planning.traces.read import read_trace

            return read_trace(self.file, function=self.function, durations=self.durations, seed=self.seed)
        if self.from_cloudwatch is not None:
            from local.planning.traces.cloudwatch import from_cloudwatch

            return from_cloudwatch(self.from_cloudwatch, self.days, self.seed)
        from local.planning.traces.made import made

        return made(self.rps or 0.0, self.hours, self.shape, self.seed, self.burst)

    def measured(self) -> Measured:
        """How long the function works and starts."""
        from local.planning.timings import assumed, of_benchmark, of_reports

        if self.reports:
            return of_reports(self.reports)
        if self.bench_cost is not None:
            return of_benchmark(self.bench_cost)
        return assumed(_MEMORY_MB, self.duration_ms, self.duration_p99_ms, self.init_ms, self.restore_ms)

    def prices(self) -> tuple[RegionPrices, str]:
        """Those of the region, and a warning when they are old. Raises PricesUnusable."""
        from local.planning.prices import PRICES, load_prices

        prices = load_prices(self.price_file or PRICES)
        return prices.region(self.region), prices.stale(datetime.now(UTC).date(), self.region)
