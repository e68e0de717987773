"""Metrics in Prometheus' text format. Imported when somebody asks: `coldframe up` starts without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from coldframe_local.emulator.lambda_service.telemetry.metrics import BUCKETS_S, FunctionMetrics, Histogram


def render(functions: Sequence[FunctionMetrics], now: float) -> tuple[str, bytes]:
    """Content type and body of an answer to Prometheus. now: by the clock of the bills."""
    return CONTENT_TYPE_PLAIN_0_0_4, generate_latest(_Moment(functions, now))


class _Moment(Collector):
    """Metrics of all functions at one moment, for Prometheus."""

    def __init__(self, functions: Sequence[FunctionMetrics], now: float) -> None:
        self._functions = functions
        self._now = now

    def collect(self) -> Iterator[Metric]:
        """Called by the library."""
        yield from self._histograms()
        yield from self._counters()
        yield from self._gauges()

    def _histograms(self) -> Iterator[Metric]:
        for name, text, value in _HISTOGRAMS:
            family = HistogramMetricFamily(f"lambda_{name}", text, labels=["function"])
            for metrics in self._functions:
                histogram = value(metrics)
                family.add_metric([metrics.function], _buckets(histogram), histogram.sum_s)
            yield family

    def _counters(self) -> Iterator[Metric]:
        for name, text, value in _COUNTERS:
            family = CounterMetricFamily(f"lambda_{name}", text, labels=["function"])
            for metrics in self._functions:
                family.add_metric([metrics.function], value(metrics))
            yield family
        cost = CounterMetricFamily("lambda_cost_usd", "Cost so far in US dollars", labels=["function"])
        for metrics in self._functions:
            cost.add_metric([metrics.function], metrics.bill.usd(self._now))
        yield cost

    def _gauges(self) -> Iterator[Metric]:
        for name, text, value in _GAUGES:
            family = GaugeMetricFamily(f"lambda_{name}", text, labels=["function"])
            for metrics in self._functions:
                family.add_metric([metrics.function], value(metrics))
            yield family
        environments = GaugeMetricFamily(
            "lambda_environments", "Execution environments", labels=["function", "type", "state"]
        )
        for metrics in self._functions:
            counts: dict[tuple[str, str], int] = {}
            for environment in metrics.state().environments.values():
                kind = "provisioned-concurrency" if environment.provisioned else "on-demand"
                key = (kind, environment.state.value)
                counts[key] = counts.get(key, 0) + 1
            for key, count in counts.items():
                environments.add_metric([metrics.function, *key], count)
        yield environments


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Bounds, each with how many values are not over it."""
    bounds = (*map(str, BUCKETS_S), "+Inf")
    return list(zip(bounds, accumulate(histogram.counts), strict=True))


_Histograms = tuple[tuple[str, str, Callable[[FunctionMetrics], Histogram]], ...]
_Values = tuple[tuple[str, str, Callable[[FunctionMetrics], float]], ...]

# CloudWatch's name first in each text.
# Source: https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html, read 2026-11.
_HISTOGRAMS: _Histograms = (
    ("duration_seconds", "Duration: of the invoke phase", lambda m: m.duration_histogram),
    (
        "init_duration_seconds",
        "InitDuration: of the init phase, on demand or provisioned",
        lambda m: m.init_histogram,
    ),
)
_COUNTERS: _Values = (
    ("invocations", "Invocations: admitted and finished", lambda m: m.invocations),
    ("errors", "Errors: the function raised, crashed, or timed out", lambda m: m.errors),
    ("throttles", "Throttles: refused with 429", lambda m: m.throttles),
    ("cold_starts", "Invocations that waited for a new environment", lambda m: m.cold_starts),
    (
        "provisioned_concurrency_invocations",
        "ProvisionedConcurrencyInvocations: in a provisioned environment",
        lambda m: m.provisioned_invocations,
    ),
    (
        "provisioned_concurrency_spillover_invocations",
        "ProvisionedConcurrencySpilloverInvocations: on demand, as all provisioned environments were busy",
        lambda m: m.spillover_invocations,
    ),
)
_GAUGES: _Values = (
    (
        "concurrent_executions",
        "ConcurrentExecutions: invocations admitted and not yet answered",
        lambda m: m.state().in_flight,
    ),
    (
        "concurrent_executions_max",
        "The most ConcurrentExecutions since the start",
        lambda m: m.most_concurrent,
    ),
    (
        "provisioned_concurrency_utilization",
        "ProvisionedConcurrencyUtilization: the share of provisioned environments that is busy",
        lambda m: m.provisioned_utilization,
    ),
)
