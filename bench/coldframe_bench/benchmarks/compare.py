"""Peers side by side: each in its own environment, the same model, texts and cores, in one run."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from coldframe.progress import Progress
from coldframe_bench.benchmarks.cold.first_requests import Subject
from coldframe_bench.benchmarks.cold.measure import one_sample
from coldframe_bench.benchmarks.cold.series import ANSWERED, Series
from coldframe_bench.data.texts import load_texts, sentences
from coldframe_bench.loader.open_loop import Load, send_closed
from coldframe_bench.loader.samples import Program, SampleFailed, take
from coldframe_bench.records.quantiles import median, quantile
from coldframe_bench.records.raw_files import Fact, RawFile, Results, Timing
from coldframe_bench.records.tables import Row, table
from coldframe_bench.targets.environments import (
    ENVIRONMENTS,
    PEERS,
    PeersMissing,
    folder_mb,
    install,
    installed_mb_of,
    prepare_model,
)
from coldframe_bench.targets.machine import describe_run
from coldframe_bench.targets.peers import Peer, load_peers, ours, peer_environ
from coldframe_bench.targets.serving import Server, ServerFailed, full_load, memory_mb, processor_s, serve
from coldframe_local.paths import ROOT

OURS_AUTO = "coldframe, `auto`"
OURS_HEAD = "coldframe, `logreg`, one window"
LAMBDA_PEER = "fastapi_mangum"
"""The peer that has a Lambda handler, so that a cold start of it can be measured without a server."""

COLD, WARM = "cold", "warm"
IN_PROCESS, SERVER = "in process", "server"
# Names of facts in the raw file.
TEXTS_PER_S, PROCESSOR_MS = "texts_per_s", "processor_ms"
MEMORY_MB, INSTALLED_MB = "memory_mb", "installed_mb"
NOT_INSTALLED, FAILED = "not installed", "failed"

_FULL_LOAD_PASSES = 3  # of all texts: the quickest would be through one in a third of a second
_WARM_UP_PASSES = 5
_QUICKER = 0.9


@dataclass(frozen=True)
class CompareOptions:
    """rounds: turns of everyone; texts: sent one after another, then again, `concurrency` at a time."""

    model_dir: Path
    out: Path
    seed: int
    rounds: int = 5
    texts: int = 100
    concurrency: int = 8
    only: tuple[str, ...] = ()
    environments: Path = ENVIRONMENTS


def run(options: CompareOptions) -> Path:
    """Installs what is missing, measures everyone in turn, returns the raw file."""
    peers = {name: peer for name, peer in load_peers().items() if not options.only or name in options.only}
    facts: dict[str, object] = {name: getattr(options, name) for name in ("rounds", "texts", "concurrency")}
    facts["source"] = load_texts(1, options.seed).source
    described = describe_run("compare", options.model_dir, options.seed, facts)
    with RawFile(options.out, described) as raw:
        prepare_model()
        ready = {}
        for name, peer in peers.items():
            try:
                install(options.environments, name, peer.needs_torch)
            except PeersMissing as exc:
                raw.write(Fact(NOT_INSTALLED, peer.title, text=str(exc)))
                continue
            ready[name] = peer
            raw.write(Fact(INSTALLED_MB, peer.title, folder_mb(options.environments / name)))
        raw.write(Fact(INSTALLED_MB, OURS_AUTO, installed_mb_of(ROOT / "functions" / "requirements.txt")))
        _Comparison(options, raw, ready).run()
    return options.out


class _Comparison:
    """Rounds in which everyone has one turn. A contender that fails once is left out of later rounds."""

    def __init__(self, options: CompareOptions, raw: RawFile, peers: Mapping[str, Peer]) -> None:
        self._options = options
        self._raw = raw
        self._peers = peers
        self._failed: set[str] = set()
        self._texts = load_texts(options.texts, options.seed).texts

    def run(self) -> None:
        """All rounds."""
        for number in Progress(range(self._options.rounds), desc="rounds", unit="round"):
            self._cold_in_process(number)
            for server in Progress(list(self._servers()), leave=False, unit="server"):
                if server.title not in self._failed:
                    self._turn(server, number)

    def _cold_in_process(self, number: int) -> None:
        """Cold starts without a server: ours, and those of the peer that has a Lambda handler."""
        conditions: dict[str, int | str] = {"what": COLD, "door": IN_PROCESS, "round": number}
        for series in ANSWERED:
            total_ms = one_sample(Subject(self._options.model_dir), series).total_ms
            self._raw.write(Timing(in_process_title(series), conditions, total_ms))
        if peer := self._peers.get(LAMBDA_PEER):
            total_ms = _lambda_sample(self._options.environments / LAMBDA_PEER)
            self._raw.write(Timing(peer.title, conditions, total_ms))

    def _turn(self, server: Server, number: int) -> None:
        try:
            with serve(server, sentences()[0]) as started:
                self._time(server, COLD, started.cold_ms, number)
                self._warm_up(server)
                bodies = [server.ask(text) for text in self._texts]
                load = Load(server.title, server.url, 0.0, (), bodies, timeout_s=60.0)
                for record in send_closed(load, 1).records:
                    self._time(server, WARM, record.latency_ms, number, record.status)
                used_s = processor_s(started.pid)
                texts = [*self._texts] * _FULL_LOAD_PASSES
                texts_per_s = full_load(server, texts, self._options.concurrency)
                used_ms = (processor_s(started.pid) - used_s) / len(texts) * 1e3
                self._raw.write(
                    Fact(TEXTS_PER_S, server.title, texts_per_s),
                    Fact(PROCESSOR_MS, server.title, used_ms),
                    Fact(MEMORY_MB, server.title, memory_mb(started.pid)),
                )
        except (ServerFailed, SampleFailed) as exc:
            self._failed.add(server.title)
            self._raw.write(Fact(FAILED, server.title, text=str(exc)))

    def _warm_up(self, server: Server) -> None:
        """Full load until that gets no quicker: workers and environments start, models load, caches fill."""
        before = 0.0
        for _ in range(_WARM_UP_PASSES):
            texts_per_s = full_load(server, self._texts, self._options.concurrency)
            if texts_per_s * _QUICKER < before:
                return
            before = texts_per_s

    def _time(self, server: Server, what: str, ms: float, number: int, status: int = 200) -> None:
        conditions: dict[str, int | str] = {"what": what, "door": SERVER, "round": number, "status": status}
        self._raw.write(Timing(server.title, conditions, ms))

    def _servers(self) -> Iterator[Server]:
        """Us and everyone, each with a port of this round."""
        yield ours(OURS_AUTO, '["auto"]', self._options.model_dir)
        yield ours(OURS_HEAD, '["logreg"]', self._options.model_dir, {"COLDFRAME_MAX_WINDOWS": "1"})
        for name, peer in self._peers.items():
            yield peer.server(name, self._options.environments / name)


def in_process_title(series: Series) -> str:
    """Our name in the table for cold starts without a server."""
    return f"coldframe, {series}"


def _lambda_sample(environment: Path) -> float:
    """Milliseconds from spawning an interpreter to the first answer of the peer's Lambda handler."""
    event = json.loads((ROOT / "tests" / "events" / "http_api_predict.json").read_text())
    event |= {"rawPath": "/predict", "body": json.dumps({"text": sentences()[0]})}
    event["requestContext"]["http"]["path"] = "/predict"
    source = Program(load="from app import handler", handler="handler").source(event, traced=False)
    process = take(source, False, peer_environ(), PEERS / LAMBDA_PEER, environment / "bin" / "python")
    if process.answer.get("statusCode") != HTTPStatus.OK:
        raise SampleFailed(f"The peer's handler answered {process.answer.get('statusCode')}, expected 200.")
    return process.total_ms


def compare_table(results: Results) -> str:
    """Everyone in the order measured; what could not be measured, and why."""
    head = " | cold start in process, ms | to first HTTP answer, ms | one caller: p50, ms | p99, ms"
    head += " | full load, texts/s | processor, ms per text | memory, MB | installed, MB"
    reasons = {
        fact.subject: f"{fact.name}: {fact.text.splitlines()[0]}"
        for fact in results.of(Fact)
        if fact.name in (NOT_INSTALLED, FAILED)
    }
    titles = dict.fromkeys([timing.name for timing in results.of(Timing)] + list(reasons))
    return table(head, [_row(results, title, reasons.get(title, "")) for title in titles])


def _row(results: Results, title: str, reason: str) -> Row:
    cold = [timings_ms(results, title, COLD, interface) for interface in (IN_PROCESS, SERVER)]
    warm = timings_ms(results, title, WARM)
    rates = [results.facts(name, title) for name in (TEXTS_PER_S, PROCESSOR_MS)]
    memory, installed = (results.facts(name, title) for name in (MEMORY_MB, INSTALLED_MB))
    return (
        f"{title} ({reason})" if reason else title,
        *(median(values).text() if values else "" for values in cold),
        *(quantile(warm, p).text(1) if warm else "" for p in (0.5, 0.99)),
        *(median(values).text(1) if values else "" for values in rates),
        f"{max(memory):.0f}" if memory else "",
        f"{installed[0]:.0f}" if installed else "",
    )


def timings_ms(results: Results, title: str, what: str, interface: str = SERVER) -> list[float]:
    """Milliseconds of one contender's correct answers of one kind."""
    return [
        timing.ms
        for timing in results.of(Timing)
        if timing.name == title
        and timing.was_under(what=what, door=interface)
        and timing.conditions.get("status", HTTPStatus.OK) == HTTPStatus.OK
    ]
