"""Metrics in Prometheus' text format: counts and times. Labels are names of this program, never callers'
texts.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from coldframe.pipeline.models import Models
from coldframe.scheduling.stats import Stats
from coldframe.schemas import CACHE_LEVELS, Usage

UpdateOutcome = Literal["served", "refused", "unread"]
"""Outcome of a look at releases: the new one serves, is refused, or the place did not answer."""
_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


class Metrics:
    """Metrics of one server. Safe for threads, as the library's metrics are."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"coldframe_{name}", about, labels, registry=self.registry)

        def gauge(name: str, about: str, *labels: str) -> Gauge:
            return Gauge(f"coldframe_{name}", about, labels, registry=self.registry)

        self._requests = counter("requests", "Requests answered", "method", "route", "status")
        self._seconds = Histogram(
            "coldframe_request_duration_seconds",
            "Seconds from a request's head to its answer",
            ["route"],
            buckets=_BUCKETS_S,
            registry=self.registry,
        )
        self._refused = counter("refused", "Requests refused before any work", "reason")
        self.left = counter("callers_left", "Requests whose caller hung up before the answer")
        self.late = counter("requests_late", "Requests answered after the moment that was promised")
        self._in_flight = gauge("requests_in_flight", "Requests accepted and not yet answered")
        self._in_flight_bytes = gauge("request_bytes_in_flight", "Bodies of requests in flight")
        self.ready = gauge("ready", "1 while readiness is true")
        self._texts = counter("texts", "Texts classified or embedded")
        self._estimated = counter("estimated_texts", "Texts answered by the estimator alone")
        self._tokens = counter("tokens", "Tokens encoded")
        self._cache = counter("cache_answers", "Answers by the cache level that had them", "level")
        self._answers = counter("answers", "Answers of heads by their part, and abstained or rushed", "kind")
        self._stages = counter("stage_duration_seconds", "Seconds that requests spent in a stage", "stage")
        self._info = gauge("model_info", "1 for each model that is served", "model", "version", "encoder")
        self._updates = counter("model_updates", "New releases of models, by what came of them", "outcome")

    def set_models(self, models: Models) -> None:
        """Names the models that are served from now on."""
        self._info.clear()
        for predictor in models.all():
            manifest = predictor.manifest
            self._info.labels(manifest.name, manifest.version, predictor.encoder.version).set(1)

    def updated(self, outcome: UpdateOutcome) -> None:
        """Counts a release."""
        self._updates.labels(outcome).inc()

    def add_passes(self, read: Callable[[], Stats]) -> None:
        """read: returns the scheduler's statistics; called whenever Prometheus reads the metrics."""
        self.registry.register(_Passes(read))

    def answered(self, method: str, route: str, status: int, seconds: float, log: Mapping[str, Any]) -> None:
        """Counts one answer. log: fields of its log line."""
        self._requests.labels(method if method in _METHODS else "other", route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        for stage, spent_ms in log.get("stages_ms", {}).items():
            self._stages.labels(stage).inc(spent_ms / 1e3)
        for kind, number in log.get("answers", {}).items():
            self._answers.labels(kind).inc(number)
        usage = log.get("usage")
        if isinstance(usage, Usage):
            self._count(usage)

    def hold(self, requests: int, total_bytes: int) -> None:
        """Sets what is in flight now."""
        self._in_flight.set(requests)
        self._in_flight_bytes.set(total_bytes)

    def refused(self, reason: str) -> None:
        """Counts one refusal. reason: the name of an error."""
        self._refused.labels(reason).inc()

    def render(self) -> tuple[bytes, str]:
        """Body and content type of an answer to Prometheus."""
        return generate_latest(self.registry), CONTENT_TYPE_PLAIN_0_0_4

    def _count(self, usage: Usage) -> None:
        self._texts.inc(usage.texts)
        self._estimated.inc(usage.estimated)
        self._tokens.inc(usage.tokens)
        for level in CACHE_LEVELS:
            if count := getattr(usage.cache, level):
                self._cache.labels(level).inc(count)


class _Passes(Collector):
    """Statistics of the scheduler."""

    def __init__(self, read: Callable[[], Stats]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """Called by the library."""
        stats = self._read()
        for name, about, value in _GAUGES:
            yield GaugeMetricFamily(f"coldframe_{name}", about, value=value(stats))
        for name, about, value in _COUNTERS:
            yield CounterMetricFamily(f"coldframe_{name}", about, value=value(stats))


_Values = tuple[tuple[str, str, Callable[[Stats], float]], ...]

_GAUGES: _Values = (
    (
        "queue_jobs",
        "Scheduled parts of requests that wait for a pass, or are in one",
        lambda s: s.queued_jobs,
    ),
    ("queue_rows", "Windows of texts in the queue", lambda s: s.queued_rows),
    ("queue_bytes", "Bytes of the rows in the queue", lambda s: s.queued_bytes),
    ("passes_running", "Forward passes that run now", lambda s: s.running_passes),
    ("pass_budget_tokens", "Tokens that a pass may have, as learnt", lambda s: s.budget_tokens),
    ("expected_wait_seconds", "Seconds until the present queue would be done", lambda s: s.expected_wait_s),
)
_COUNTERS: _Values = (
    ("passes", "Forward passes", lambda s: s.passes),
    ("pass_rows", "Windows of texts in forward passes", lambda s: s.rows),
    ("pass_tokens", "Tokens in forward passes", lambda s: s.tokens),
    ("pass_seconds", "Seconds that forward passes took", lambda s: s.actual_s),
    ("pass_predicted_seconds", "Seconds that forward passes were predicted to take", lambda s: s.predicted_s),
    (
        "queue_wait_seconds",
        "Seconds that admitted parts waited for their first pass",
        lambda s: s.queue_wait_s,
    ),
    ("jobs_done", "Scheduled parts done", lambda s: s.done),
    ("jobs_missed", "Scheduled parts given up, because their time was over", lambda s: s.missed),
    (
        "jobs_late",
        "Scheduled parts done, but later than promised",
        lambda s: s.late,
    ),
    (
        "jobs_refused",
        "Scheduled parts refused at once, because they could not be done in time",
        lambda s: s.refused,
    ),
    ("jobs_rushed", "Scheduled parts answered by the estimator, for lack of time", lambda s: s.rushed),
    ("jobs_cut", "Scheduled parts answered from fewer windows, for lack of time", lambda s: s.cut),
    ("jobs_cancelled", "Scheduled parts whose caller hung up", lambda s: s.cancelled),
    ("jobs_failed", "Scheduled parts whose pass failed", lambda s: s.failed),
)
