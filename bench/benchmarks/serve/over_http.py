"""`coldframe serve` beside other servers with their own batching, over HTTP, open loop, the same texts."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from bench.benchmarks.serve.mixes import ServeOptions, TextMix
from bench.loader.open_loop import Load, send, send_closed
from bench.loader.samples import SampleFailed
from bench.records.raw_files import Fact, RawFile
from bench.targets.cores import loader_core, target_cores
from bench.targets.environments import PeersMissing, install, prepare_model
from bench.targets.peers import Contender, load_peers, own_server
from bench.targets.serving import ServerFailed, serve
from coldframe.capacity.arrivals import poisson
from coldframe.progress import Progress

OURS_HTTP = "coldframe serve"
HTTP_CAPACITY_RPS, NOT_MEASURED = "http_capacity_rps", "not measured"
HTTP_LOADS = (0.8, 1.5)
_CALLERS = 64
_WARM_UP, _CAPACITY = 200, 400
_TIMEOUT_S = 10.0


def measure_over_http(options: ServeOptions, raw: RawFile, mixes: list[TextMix]) -> None:
    """Rates are shares of what ours answers of each mix at full load; every server meets the same ones."""
    prepare_model()
    rates = _measure_ours(options, raw, mixes)
    peers = {name: peer for name, peer in load_peers().items() if peer.batched is not None}
    for name in Progress([name for name in peers if name in options.only or not options.only], unit="peer"):
        peer = peers[name]
        try:
            install(options.environments, name, peer.needs_torch)
            contender = peer.batching(name, options.environments / name)
            with _served(contender, mixes[0]):
                for mix in mixes:
                    _full_load(contender, mix, _WARM_UP)
                    _send_rates(options, raw, contender, mix, rates[mix.name])
        except (PeersMissing, ServerFailed, SampleFailed) as exc:
            raw.write(Fact(NOT_MEASURED, peer.title, text=str(exc)))


def http_target(mix: str, title: str) -> str:
    """The name of a server's answers in the raw file."""
    return f"{mix}, HTTP: {title}"


def _measure_ours(options: ServeOptions, raw: RawFile, mixes: list[TextMix]) -> dict[str, float]:
    rates: dict[str, float] = {}
    contender = _ours(options)
    with _served(contender, mixes[0]):
        for mix in mixes:
            _full_load(contender, mix, _WARM_UP)
            rates[mix.name] = _full_load(contender, mix, _CAPACITY)
            raw.write(Fact(HTTP_CAPACITY_RPS, mix.name, rates[mix.name]))
        for mix in mixes:
            _send_rates(options, raw, contender, mix, rates[mix.name])
    return rates


def _send_rates(
    options: ServeOptions, raw: RawFile, contender: Contender, mix: TextMix, capacity_rps: float
) -> None:
    for load in HTTP_LOADS:
        rate_rps = load * capacity_rps
        count = max(20, math.ceil(rate_rps * options.seconds))
        bodies = [contender.server.ask(text) for text in mix.take(count)]
        due_s = poisson(rate_rps, count, options.seed)
        target = http_target(mix.name, contender.title)
        replies = send(Load(target, contender.server.url, rate_rps, due_s, bodies, _TIMEOUT_S))
        raw.write(*replies.records)


def _full_load(contender: Contender, mix: TextMix, count: int) -> float:
    """Requests that were answered per second, with as many callers as a server has to put together."""
    bodies = [contender.server.ask(text) for text in mix.take(count)]
    load = Load(contender.title, contender.server.url, 0.0, [0.0] * count, bodies, timeout_s=60.0)
    records = send_closed(load, _CALLERS).records
    right = sum(record.status == HTTPStatus.OK for record in records)
    return right / max(record.due_s + record.latency_ms / 1e3 for record in records)


def _ours(options: ServeOptions) -> Contender:
    """Peers cut a text at 256 tokens: one window. They have one head, and no cache."""
    objective = {"COLDFRAME_OBJECTIVE_MS": str(round(options.deadline_ms))}
    return Contender(OURS_HTTP, own_server(options.model_dir, {"COLDFRAME_MAX_WINDOWS": "1"} | objective))


@contextmanager
def _served(contender: Contender, mix: TextMix) -> Iterator[None]:
    with target_cores(), serve(contender.server, mix.texts[0]), loader_core():
        yield
