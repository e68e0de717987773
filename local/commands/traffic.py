"""Options of commands that simulate: which traffic, which function, which prices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from local.emulator.lambda_service.settings import RESTORE_MS

if TYPE_CHECKING:
    from local.planner.scenarios.prices import RegionPrices
    from local.planner.scenarios.timings import Measured
    from local.planner.traces.trace import Trace

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_SHAPES = ("constant", "diurnal", "bursts", "on-off")
_OWN = "[default: Coldframe's own, as published]"

_TRACE = (
    click.option("--trace", "file", type=_FILE, help="A CSV file of arrivals, or a log with REPORT lines."),
    click.option(
        "--durations", type=_FILE, help="File of duration percentiles that belongs to an Azure trace of 2019."
    ),
    click.option("--function", help="Only this function of the trace.  [default: all of them]"),
    click.option("--from-cloudwatch", metavar="NAME", help="The traffic of a function that runs on AWS."),
    click.option(
        "--days",
        default=14,
        show_default=True,
        type=click.IntRange(1, 15),
        help="Days of CloudWatch metrics to read.",
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
    click.option("--duration-ms", type=click.FloatRange(0.1), help=f"Duration of a warm invocation.  {_OWN}"),
    click.option(
        "--duration-p99-ms",
        type=click.FloatRange(0.1),
        help="Its 99th percentile.  [default: with --duration-ms, all last equally long]",
    ),
    click.option("--init-ms", type=click.FloatRange(1.0), help=f"Duration of an init phase.  {_OWN}"),
    click.option(
        "--restore-ms",
        default=RESTORE_MS,
        show_default=True,
        type=click.FloatRange(1.0),
        help="Duration of a restore with SnapStart.",
    ),
)
architecture_option = click.option(
    "--architecture",
    default="arm64",
    show_default=True,
    type=click.Choice(("arm64", "x86_64")),
    help="Instruction set, which decides the price and the image.",
)
_PRICED = (
    architecture_option,
    click.option("--region", default="us-east-1", show_default=True, help="AWS region of the prices."),
    click.option("--prices", "price_file", type=_FILE, help="A file of prices.  [default: the project's]"),
)


def traffic_options(command: F) -> F:
    """Adds them all; the command gets them as keywords, and hands them to `Traffic`."""
    return _with((*_TRACE, *_TIMINGS, *_PRICED), command)


def price_options(command: F) -> F:
    """Adds --architecture, --region and --prices."""
    return _with(_PRICED, command)


def _with(options: Sequence[Callable[[F], F]], command: F) -> F:
    for option in reversed(options):
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
    duration_ms: float | None
    duration_p99_ms: float | None
    init_ms: float | None
    restore_ms: float
    architecture: str
    region: str
    price_file: Path | None

    def trace(self) -> Trace:
        """The traffic. Raises click.UsageError unless exactly one source is named, and TraceUnusable."""
        sources = [option for option in (self.file, self.from_cloudwatch, self.rps) if option is not None]
        if len(sources) != 1:
            raise click.UsageError("Name one of --trace FILE, --from-cloudwatch NAME and --rps RATE.")
        if self.file is not None:
            from local.planner.traces.read import read_trace

            return read_trace(self.file, function=self.function, durations=self.durations, seed=self.seed)
        if self.from_cloudwatch is not None:
            from local.planner.traces.cloudwatch import from_cloudwatch

            return from_cloudwatch(self.from_cloudwatch, self.days, self.seed)
        from local.planner.traces.made import made

        return made(self.rps or 0.0, self.hours, self.shape, self.seed, self.burst)

    def measured(self) -> Measured:
        """How long the function works and starts."""
        from local.planner.scenarios.timings import of_benchmark, of_reports, published

        if self.reports:
            return of_reports(self.reports)
        if self.bench_cost is not None:
            return of_benchmark(self.bench_cost)
        own = published(self.restore_ms)
        figures = (self.duration_ms, self.duration_p99_ms, self.init_ms)
        return own.instead(*figures) if any(figures) else own

    def prices(self) -> tuple[RegionPrices, str]:
        """Those of the region, and a warning when they are old. Raises PricesUnusable."""
        from local.planner.scenarios.prices import PRICES, load_prices

        prices = load_prices(self.price_file or PRICES)
        return prices.region(self.region), prices.stale(datetime.now(UTC).date(), self.region)
