"""Load: the highest offered rate that holds the objective, and latency at every rate tried on the way."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from coldframe.capacity.arrivals import Arrivals, poisson
from coldframe.progress import Progress
from coldframe_bench.data.texts import load_texts, sentences, with_duplicates
from coldframe_bench.loader.open_loop import Load, send
from coldframe_bench.loader.verdict import Point, Slo, judge, search_peak
from coldframe_bench.records.raw_files import Fact, RawFile, Results
from coldframe_bench.records.tables import Row, table
from coldframe_bench.targets.cores import loader_core, target_cores
from coldframe_bench.targets.machine import describe_run
from coldframe_bench.targets.serving import Server, free_port, listening, local_api, served
from coldframe_local.paths import ROOT

NULL = "null target"
CACHE_OFF = "cache off"
CACHE_ON = "cache on"
PEAK_RPS, HIT_SHARE = "peak_rps", "hit_share"
_NULL_RPS = 1000.0
_PATH = "/v1/predict"
_BURST, _BURSTS = 10, 10
_COLD = b'"start":"cold"'
_ALL_LOADED = ["auto", "logreg"]


@dataclass(frozen=True)
class LoadOptions:
    """url: of a running target; empty: our own local API is started, and stopped after.

    requests: counted at each rate; warm_up_s: those due before are sent, too, but not counted.
    duplicates: share of texts that came before, with the cache on; exponent: of their popularity.
    """

    model_dir: Path
    out: Path
    seed: int
    slo: Slo = field(default_factory=Slo)
    url: str = ""
    start_rps: float = 20.0
    requests: int = 600
    warm_up_s: float = 2.0
    duplicates: float = 0.5
    exponent: float = 0.8
    precision: float = 0.1
    limit_rps: float = 10_000.0
    texts: Path | None = None
    arrivals: Arrivals = poisson
    arrivals_name: str = "poisson"


def run(options: LoadOptions) -> Path:
    """Measures the loader, then the target without and with its cache; returns the raw file."""
    described = describe_run("load", options.model_dir, options.seed, _facts(options))
    with RawFile(options.out, described) as raw:
        with target_cores(), listening("-m", "coldframe_bench.targets.null_target") as url, loader_core():
            loader = _Loader(options, raw, url, 0.0)
            overhead = loader.point(NULL, _NULL_RPS, cache=False, duplicates=0.0)
        with _target(options) as url:
            loader = _Loader(options, raw, url, overhead.p99_ms.value)
            for target, cache, duplicates in ((CACHE_OFF, False, 0.0), (CACHE_ON, True, options.duplicates)):
                loader.find_peak(target, cache, duplicates)
    return options.out


class _Loader:
    """Sends to one target, one rate after another, always texts that were not sent before."""

    def __init__(self, options: LoadOptions, raw: RawFile, url: str, overhead_ms: float) -> None:
        self._options = options
        self._raw = raw
        self._url = url
        self._overhead_ms = overhead_ms
        self._points = 0

    def find_peak(self, target: str, cache: bool, duplicates: float) -> float:
        """The highest rate that holds the objective; writes what was sent on the way."""
        self._warm_up()
        with Progress(desc=target, unit="rate") as progress:

            def holds(rate_rps: float) -> bool:
                point = self.point(target, rate_rps, cache, duplicates)
                progress.set_postfix_str(f"{rate_rps:.0f} rps, p99 {point.p99_ms.value:.0f} ms")
                progress.update()
                return point.held

            peak = search_peak(
                holds, self._options.start_rps, self._options.precision, self._options.limit_rps
            )
        self._raw.write(Fact(PEAK_RPS, target, peak))
        return peak

    def _warm_up(self) -> None:
        """Has as many requests answered at once as a burst may bring: cold starts are measured elsewhere.

        Every environment answers through the encoder, which `auto` alone might first need much later.
        """
        texts = load_texts(_BURST, self._options.seed).texts
        bodies = [_body(text, False, heads=_ALL_LOADED) for text in texts]
        for _ in range(_BURSTS):
            replies = send(Load("warm-up", self._url, 0.0, [0.0] * _BURST, bodies, timeout_s=60.0))
            cold = any(_COLD in body for body in replies.bodies)
            if not cold and all(record.status == 200 for record in replies.records):
                return

    def point(self, target: str, rate_rps: float, cache: bool, duplicates: float) -> Point:
        """One rate: warm-up, then the requests that count."""
        options = self._options
        count = options.requests + round(options.warm_up_s * rate_rps)
        self._points += 1
        seed = options.seed + self._points
        fresh = load_texts(count, seed, options.texts)
        texts = with_duplicates(fresh.texts, count, duplicates, options.exponent, seed)
        due_s = options.arrivals(rate_rps, count, seed)
        replies = send(Load(target, self._url, rate_rps, due_s, [_body(text, cache) for text in texts]))
        self._raw.write(*replies.records)
        if target != NULL:
            self._raw.write(Fact(HIT_SHARE, _rate_of(target, rate_rps), _hit_share(replies.bodies)))
        return judge(replies.records, options.slo, options.warm_up_s, self._overhead_ms)


def _facts(options: LoadOptions) -> dict[str, object]:
    """Options that a reader of the raw file has to know."""
    return {
        "slo": asdict(options.slo),
        "warm_up_s": options.warm_up_s,
        "arrivals": options.arrivals_name,
        "texts": load_texts(1, options.seed, options.texts).source,
        "duplicates": options.duplicates,
        "exponent": options.exponent,
        "url": options.url or "coldframe up",
    }


def _body(text: str, cache: bool, **options: object) -> bytes:
    return json.dumps({"text": text, "cache": cache, **options}).encode()


def _hit_share(bodies: Sequence[bytes]) -> float:
    """Share of the answered texts that came from the prediction cache."""
    usages = [json.loads(body)["usage"] for body in bodies if body.startswith(b'{"model"')]
    hits: int = sum(usage["cache"]["l1"] + usage["cache"]["l2"] for usage in usages)
    return hits / max(1, len(usages))  # one text each


@contextmanager
def _target(options: LoadOptions) -> Iterator[str]:
    """Where the target is asked. Raises ServerFailed where ours does not start."""
    if options.url:
        yield options.url.rstrip("/") + _PATH
        return
    port = free_port()
    server = Server(local_api(port), ROOT, os.environ, port, _PATH, '{"text": $TEXT}')
    with served(server, sentences()[0]):
        yield server.url


def load_points(results: Results) -> list[Point]:
    """The verdict at every rate that was tried, as `coldframe bench load` came to it."""
    options = results.run.options
    slo = Slo(**options["slo"])
    points: list[Point] = []
    loader_ms = 0.0
    for of_rate in results.answers.values():
        points.append(judge(of_rate, slo, options["warm_up_s"], loader_ms))
        if not loader_ms:  # the null target comes first
            loader_ms = points[0].p99_ms.value
    return points


def load_table(results: Results) -> str:
    """Every rate, with the highest one that held in bold; the null target is the loader's own share."""
    head = "target | offered, 1/s | answered, 1/s | p50, ms | p95, ms | p99, ms | success | from cache"
    points = sorted(load_points(results), key=lambda point: (point.target, point.offered_rps))
    return table(f"{head} | objective | verdict", [_row(results, point) for point in points])


def _row(results: Results, point: Point) -> Row:
    rate = f"{point.offered_rps:.0f}"
    hits = results.facts(HIT_SHARE, _rate_of(point.target, point.offered_rps))
    return (
        point.target,
        f"**{rate}**" if point.offered_rps in results.facts(PEAK_RPS, point.target) else rate,
        f"{point.throughput_rps:.1f}",
        *(interval.text(1) for interval in (point.p50_ms, point.p95_ms, point.p99_ms)),
        f"{point.success:.2%}",
        f"{hits[-1]:.0%}" if hits else "",
        "held" if point.held else "not held",
        point.verdict,
    )


def _rate_of(target: str, rate_rps: float) -> str:
    """Subject of a fact about the share of hits."""
    return f"{target} at {rate_rps:g} rps"
