"""Metrics in Prometheus' text format: counts and times. Labels are names of ours, never a caller's text."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from coldframe.api.schemas import Usage

_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_CACHE_LEVELS = ("l1", "l2", "embedding", "miss")


class Metrics:
    """Of one server. Safe for threads, as the library's metrics are."""

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
            "From a request's head to its answer",
            ["route"],
            buckets=_BUCKETS_S,
            registry=self.registry,
        )
        self._refused = counter("refused", "Requests refused before any work", "reason")
        self.left = counter("callers_left", "Requests whose caller hung up before the answer")
        self._in_flight = gauge("requests_in_flight", "Requests accepted and not yet answered")
        self._in_flight_bytes = gauge("request_bytes_in_flight", "Bodies of requests in flight")
        self.ready = gauge("ready", "1 while readiness is true")
        self._texts = counter("texts", "Texts classified or embedded")
        self._estimated = counter("estimated_texts", "Texts answered by the estimator alone")
        self._tokens = counter("tokens", "Tokens encoded")
        self._passes = counter("request_passes", "Forward passes that requests had rows in")
        self._cache = counter("cache_answers", "Answers by where they were found", "level")
        self._info = gauge("model_info", "1 for each model that is served", "model", "version", "encoder")

    def add_model(self, model: str, version: str, encoder: str) -> None:
        """A model that is served."""
        self._info.labels(model, version, encoder).set(1)

    def add_gauges(self, read: Callable[[], Mapping[str, tuple[str, float]]]) -> None:
        """read: text and value by name, asked whenever Prometheus asks."""
        self.registry.register(_Moment(read))

    def answered(self, method: str, route: str, status: int, seconds: float, log: Mapping[str, Any]) -> None:
        """One answer. log: what its log line counts."""
        self._requests.labels(method if method in _METHODS else "other", route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        usage = log.get("usage")
        if isinstance(usage, Usage):
            self._count(usage)

    def hold(self, requests: int, total_bytes: int) -> None:
        """What is in flight now."""
        self._in_flight.set(requests)
        self._in_flight_bytes.set(total_bytes)

    def refused(self, reason: str) -> None:
        """One refusal. reason: the name of an error."""
        self._refused.labels(reason).inc()

    def render(self) -> tuple[bytes, str]:
        """Body and content type of an answer to Prometheus."""
        return generate_latest(self.registry), CONTENT_TYPE_PLAIN_0_0_4

    def _count(self, usage: Usage) -> None:
        self._texts.inc(usage.texts)
        self._estimated.inc(usage.estimated)
        self._tokens.inc(usage.tokens)
        self._passes.inc(usage.batches)
        for level in _CACHE_LEVELS:
            if found := getattr(usage.cache, level):
                self._cache.labels(level).inc(found)


class _Moment(Collector):
    """Values that somebody else keeps."""

    def __init__(self, read: Callable[[], Mapping[str, tuple[str, float]]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """Called by the library."""
        for name, (about, value) in self._read().items():
            yield GaugeMetricFamily(f"coldframe_{name}", about, value=value)
