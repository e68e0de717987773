"""`coldframe serve` beside other servers with their own batching, over HTTP, open loop, the same texts."""

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from bench.benchmarks.serve.mixes import TextMix
from bench.loader.open_loop import Load, send, send_closed
from bench.loader.samples import SampleFailed
from bench.records.raw_files import Fact, RawFile
from bench.targets.cores import loader_core, target_cores
from bench.targets.environments import ENVIRONMENTS, install, prepare_model
from bench.targets.peers import Contender, Peer, load_peers
from bench.targets.serving import Server, ServerFailed, free_port, serve
from coldframe.capacity.arrivals import poisson
from coldframe.progress import Progress
from local.paths import ROOT, models

OURS_HTTP = "coldframe serve"
HTTP_CAPACITY_RPS, NOT_MEASURED = "http_capacity_rps", "not measured"
HTTP_LOADS = (0.8, 1.5)
_CALLERS = 64
_WARM_UP, _CAPACITY = 200, 400
_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class HttpOptions:
    """only: names of peers; none: all that can batch. seconds: of each rate."""

    model_dir: Path
    seed: int
    seconds: float
    deadline_ms: float
    only: tuple[str, ...] = ()
    environments: Path = ENVIRONMENTS


def measure_over_http(options: HttpOptions, raw: RawFile, mixes: list[TextMix]) -> None:
    """Rates are shares of what ours answers of each mix at full load; every server meets the same ones."""
    prepare_model()
    rates = _measure_ours(options, raw, mixes)
    peers = {name: peer for name, peer in load_peers().items() if peer.batched is not None}
    for name in Progress([name for name in peers if name in options.only or not options.only], unit="peer"):
        peer, environment = peers[name], options.environments / name
        reason = install(environment, name, peer.needs_torch)
        if not reason:
            reason = _measure_peer(options, raw, mixes, rates, peer, name)
        if reason:
            raw.write(Fact(NOT_MEASURED, peer.title, text=reason))


def http_target(mix: str, title: str) -> str:
    """The name of a server's answers in the raw file."""
    return f"{mix}, HTTP: {title}"


def _measure_ours(options: HttpOptions, raw: RawFile, mixes: list[TextMix]) -> dict[str, float]:
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


def _measure_peer(
    options: HttpOptions,
    raw: RawFile,
    mixes: list[TextMix],
    rates: dict[str, float],
    peer: Peer,
    name: str,
) -> str:
    """An empty text, or why there is nothing to compare with."""
    contender = peer.batching(name, options.environments / name)
    try:
        with _served(contender, mixes[0]):
            for mix in mixes:
                _full_load(contender, mix, _WARM_UP)
                _send_rates(options, raw, contender, mix, rates[mix.name])
    except (ServerFailed, SampleFailed) as exc:
        return str(exc)
    return ""


def _send_rates(
    options: HttpOptions, raw: RawFile, contender: Contender, mix: TextMix, capacity_rps: float
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


def _ours(options: HttpOptions) -> Contender:
    """Peers cut a text at 256 tokens: one window. They have one head, and no cache."""
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COLDFRAME_")}
    environ = kept | {
        "PORT": str(port),
        "COLDFRAME_MODEL_DIR": str(options.model_dir.resolve()),
        "COLDFRAME_MODELS": models(),
        "COLDFRAME_MAX_WINDOWS": "1",
        "COLDFRAME_LOG_LEVEL": "off",
        "COLDFRAME_OBJECTIVE_MS": str(round(options.deadline_ms)),
    }
    body = '{"text": $TEXT, "heads": ["logreg"], "cache": false}'
    command = [str(Path(sys.executable).parent / "coldframe"), "serve"]
    return Contender(OURS_HTTP, Server(command, ROOT, environ, port, "/v1/predict", body))


@contextmanager
def _served(contender: Contender, mix: TextMix) -> Iterator[None]:
    with target_cores(), serve(contender.server, mix.texts[0]), loader_core():
        yield
