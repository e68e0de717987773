"""`coldframe serve` beside other servers with their own batching, over HTTP, open loop, the same texts."""

import math

from coldframe.capacity.arrivals import poisson
from coldframe.progress import Progress
from coldframe_bench.benchmarks.serve.mixes import ServeOptions, TextMix
from coldframe_bench.loader.open_loop import Load, send
from coldframe_bench.loader.samples import SampleFailed
from coldframe_bench.records.raw_files import Fact, RawFile
from coldframe_bench.targets.environments import PeersMissing, install, prepare_model
from coldframe_bench.targets.peers import load_peers, own_server
from coldframe_bench.targets.serving import Server, ServerFailed, full_load, served

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
            server = peer.batching(name, options.environments / name)
            with served(server, mixes[0].texts[0]):
                for mix in mixes:
                    full_load(server, mix.take(_WARM_UP), _CALLERS)
                    _send_rates(options, raw, server, mix, rates[mix.name])
        except (PeersMissing, ServerFailed, SampleFailed) as exc:
            raw.write(Fact(NOT_MEASURED, peer.title, text=str(exc)))


def http_target(mix: str, title: str) -> str:
    """The name of a server's answers in the raw file."""
    return f"{mix}, HTTP: {title}"


def _measure_ours(options: ServeOptions, raw: RawFile, mixes: list[TextMix]) -> dict[str, float]:
    """Peers cut a text at 256 tokens: one window. They have one head, and no cache."""
    environ = {"COLDFRAME_MAX_WINDOWS": "1", "COLDFRAME_OBJECTIVE_MS": str(round(options.deadline_ms))}
    server = own_server(OURS_HTTP, options.model_dir, environ)
    rates: dict[str, float] = {}
    with served(server, mixes[0].texts[0]):
        for mix in mixes:
            full_load(server, mix.take(_WARM_UP), _CALLERS)
            rates[mix.name] = full_load(server, mix.take(_CAPACITY), _CALLERS)
            raw.write(Fact(HTTP_CAPACITY_RPS, mix.name, rates[mix.name]))
        for mix in mixes:
            _send_rates(options, raw, server, mix, rates[mix.name])
    return rates


def _send_rates(
    options: ServeOptions, raw: RawFile, server: Server, mix: TextMix, capacity_rps: float
) -> None:
    for load in HTTP_LOADS:
        rate_rps = load * capacity_rps
        count = max(20, math.ceil(rate_rps * options.seconds))
        due_s = poisson(rate_rps, count, options.seed)
        bodies = [server.ask(text) for text in mix.take(count)]
        target = http_target(mix.name, server.title)
        raw.write(*send(Load(target, server.url, rate_rps, due_s, bodies, _TIMEOUT_S)).records)
