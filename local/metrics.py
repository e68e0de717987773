"""CloudWatch's metrics of Lambda, counted here: for Prometheus, the console and the summary at exit."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from coldframe.concurrency import State
from local.lambda_types import Invoked, Percentiles
from local.pricing import Bill
from local.report import InvocationStatus

_WINDOW = 1000  # values behind a percentile
_RATE_S = 10

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class Latest:
    """The latest values of something, for its percentiles."""

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=_WINDOW)

    def add(self, value: float) -> None:
        """One more, the oldest one forgotten."""
        self._values.append(value)

    def percentiles(self) -> Percentiles:
        """The smallest value that the given share of all does not exceed (nearest rank)."""
        ordered = sorted(self._values)

        def at(share: float) -> float:
            return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0

        return Percentiles(at(0.50), at(0.95), at(0.99))


class Rate:
    """How often something happened in the last ten seconds, counted second by second."""

    def __init__(self) -> None:
        self._seconds: deque[tuple[int, int]] = deque()

    def add(self, now: float) -> None:
        """It happened."""
        second = int(now)
        count = self._seconds.pop()[1] if self._seconds and self._seconds[-1][0] == second else 0
        self._seconds.append((second, count + 1))
        self._forget(now)

    def per_s(self, now: float) -> float:
        """Events per second."""
        self._forget(now)
        return sum(count for _, count in self._seconds) / _RATE_S

    def _forget(self, now: float) -> None:
        while self._seconds and self._seconds[0][0] <= int(now) - _RATE_S:
            self._seconds.popleft()


class FunctionMetrics:
    """What is counted of one function. state: what its admission rules know, asked when needed."""

    def __init__(self, function: str, state: Callable[[], State], histograms: Histograms, bill: Bill) -> None:
        self.function = function
        self.state = state
        self.bill = bill
        self.arrivals = 0
        self.invocations = 0
        self.errors = 0
        self.throttles = 0
        self.cold_starts = 0
        self.provisioned_invocations = 0
        self.spillover_invocations = 0
        self.most_concurrent = 0
        self.arrival_rate = Rate()
        self.throttle_rate = Rate()
        self.latency_ms = Latest()
        self.duration_ms = Latest()
        self.init_ms = Latest()
        self._duration = histograms.duration.labels(function)
        self._init_duration = histograms.init_duration.labels(function)

    def arrived(self, now: float) -> None:
        """An invocation is asked for."""
        self.arrivals += 1
        self.arrival_rate.add(now)

    def observe_concurrency(self) -> None:
        """The state has changed."""
        self.most_concurrent = max(self.most_concurrent, self.state().in_flight)

    def throttled(self, now: float) -> None:
        """It is refused."""
        self.throttles += 1
        self.throttle_rate.add(now)

    def invoked(self, invoked: Invoked, memory_mb: int, latency_ms: float) -> None:
        """It is over. latency_ms: since it was asked for."""
        self.invocations += 1
        self.errors += invoked.outcome.status is not InvocationStatus.SUCCESS
        self.cold_starts += invoked.cold
        self.provisioned_invocations += invoked.provisioned
        self.spillover_invocations += invoked.spillover
        self.latency_ms.add(latency_ms)
        self.duration_ms.add(invoked.duration_ms)
        self._duration.observe(invoked.duration_ms / 1000)
        if invoked.init_ms is not None:
            self._initialized(invoked.init_ms)
        self.bill.invocation(invoked.billed_ms, memory_mb, provisioned=invoked.provisioned)

    def provisioned_initialized(self, init_ms: float, memory_mb: int) -> None:
        """A provisioned environment is up."""
        self._initialized(init_ms)
        self.bill.provisioned_init(init_ms, memory_mb)

    @property
    def provisioned_utilization(self) -> float:
        """The share of provisioned environments that are busy, 0 to 1."""
        state = self.state()
        allocated = sum(provisioned.allocated for provisioned in state.provisioned.values())
        return state.provisioned_in_flight / allocated if allocated else 0.0

    def _initialized(self, init_ms: float) -> None:
        self.init_ms.add(init_ms)
        self._init_duration.observe(init_ms / 1000)


class Histograms:
    """Durations of all functions."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.duration = Histogram(
            "lambda_duration_seconds",
            "Duration: of the invoke phase",
            ["function"],
            registry=registry,
            buckets=_SECONDS,
        )
        self.init_duration = Histogram(
            "lambda_init_duration_seconds",
            "InitDuration: of the init phase, on demand or provisioned",
            ["function"],
            registry=registry,
            buckets=_SECONDS,
        )


class Metrics(Collector):
    """The metrics of all functions, as Prometheus reads them. clock: that of the bills."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._registry = CollectorRegistry()
        self._histograms = Histograms(self._registry)
        self._functions: list[FunctionMetrics] = []
        self._registry.register(self)

    def add(self, function: str, state: Callable[[], State], bill: Bill) -> FunctionMetrics:
        """Metrics of one more function, all 0."""
        metrics = FunctionMetrics(function, state, self._histograms, bill)
        self._functions.append(metrics)
        return metrics

    def render(self) -> tuple[str, bytes]:
        """Content type and body of an answer to Prometheus."""
        return CONTENT_TYPE_PLAIN_0_0_4, generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        """What is counted outside of the histograms; called by the registry."""
        yield from self._counters()
        yield from self._gauges()

    def _counters(self) -> Iterator[Metric]:
        now = self._clock()
        for name, text, value in _COUNTERS:
            family = CounterMetricFamily(f"lambda_{name}", text, labels=["function"])
            for metrics in self._functions:
                family.add_metric([metrics.function], value(metrics))
            yield family
        cost = CounterMetricFamily("lambda_cost_usd", "Cost so far in US dollars", labels=["function"])
        for metrics in self._functions:
            cost.add_metric([metrics.function], metrics.bill.usd(now))
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


_Values = tuple[tuple[str, str, Callable[[FunctionMetrics], float]], ...]

# CloudWatch's name first in each text.
# Source: https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html, read 2026-11.
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
