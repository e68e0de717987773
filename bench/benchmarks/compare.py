"""Peers side by side: each in its own environment, the same model, texts and cores, in one run."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct
from tqdm import tqdm

from bench.benchmarks.cold import ENCODER, ESTIMATOR, ColdOptions, one_sample
from bench.data.texts import load_texts, sentences
from bench.loader.open_loop import Load, send_closed
from bench.loader.samples import Program, SampleFailed, take
from bench.reporting.records import Fact, RawFile, Timing
from bench.targets.environments import (
    ENVIRONMENTS,
    PEERS,
    PEERS_MODEL,
    folder_mb,
    install,
    installed_mb_of,
    prepare_model,
)
from bench.targets.machine import describe_run
from bench.targets.serving import Server, ServerFailed, free_port, local_api, memory_mb, processor_s, serve
from local.paths import ROOT

OURS_AUTO = "coldframe, `auto`"
OURS_HEAD = "coldframe, `logreg`, one window"
HOT_PATH = "in process"
SERVER = "server"
_FULL_LOAD_PASSES = 3  # of all texts: the quickest would be through one in a third of a second
_WARM_UP_PASSES = 5
_QUICKER = 0.9


class Peer(Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of peers.toml."""

    title: str
    command: list[str]
    path: str
    body: str
    needs_torch: bool = False


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


@dataclass(frozen=True)
class Contender:
    """A server that takes part. environ: beside what all get."""

    title: str
    server: Server


def run(options: CompareOptions) -> Path:
    """Installs what is missing, measures everyone in turn, returns the raw file."""
    peers = {name: peer for name, peer in load_peers().items() if not options.only or name in options.only}
    described = describe_run("compare", options.model_dir, options.seed, _facts(options))
    with RawFile(options.out, described) as raw:
        prepare_model()
        ready = {}
        for name, peer in peers.items():
            reason = install(options.environments / name, name, peer.needs_torch)
            if reason:
                raw.write(Fact("not installed", peer.title, text=reason))
            else:
                ready[name] = peer
                raw.write(Fact("installed_mb", peer.title, folder_mb(options.environments / name)))
        raw.write(Fact("installed_mb", OURS_AUTO, installed_mb_of(ROOT / "functions" / "requirements.txt")))
        _Comparison(options, raw, ready).run()
    return options.out


def load_peers() -> dict[str, Peer]:
    """All peers, by the name of their folder."""
    return msgspec.toml.decode((PEERS / "peers.toml").read_bytes(), type=dict[str, Peer])


class _Comparison:
    """Rounds in which everyone has one turn. Who fails is said so once, and left out from then on."""

    def __init__(self, options: CompareOptions, raw: RawFile, peers: Mapping[str, Peer]) -> None:
        self._options = options
        self._raw = raw
        self._peers = peers
        self._failed: set[str] = set()
        self._texts = load_texts(options.texts, options.seed).texts

    def run(self) -> None:
        """All rounds."""
        for number in tqdm(range(self._options.rounds), desc="rounds", unit="round"):
            self._hot_paths(number)
            for contender in tqdm(list(self._contenders()), leave=False, unit="server"):
                if contender.title not in self._failed:
                    self._turn(contender, number)

    def _hot_paths(self, number: int) -> None:
        """Cold starts without a server: ours, and that of the peer that has a Lambda handler, too."""
        cold = ColdOptions(self._options.model_dir, 1, self._options.seed, self._options.out)
        for series in (ESTIMATOR, ENCODER):
            total_ms = one_sample(cold, series).total_ms
            self._raw.write(
                Timing(f"coldframe, {series}", {"what": "cold", "door": HOT_PATH, "round": number}, total_ms)
            )
        if "fastapi_mangum" in self._peers:
            total_ms = _lambda_sample(self._options.environments / "fastapi_mangum")
            title = self._peers["fastapi_mangum"].title
            self._raw.write(Timing(title, {"what": "cold", "door": HOT_PATH, "round": number}, total_ms))

    def _turn(self, contender: Contender, number: int) -> None:
        server, texts = contender.server, self._texts
        try:
            with serve(server, sentences()[0]) as started:
                self._time(contender, "cold", started.cold_ms, number)
                self._warm_up(contender)
                for record in send_closed(_load(contender, texts), 1).records:
                    self._time(contender, "warm", record.latency_ms, number, record.status)
                used_s = processor_s(started.pid)
                texts_per_s = self._full_load(contender, _FULL_LOAD_PASSES)
                used_s = processor_s(started.pid) - used_s
                self._raw.write(Fact("texts_per_s", contender.title, texts_per_s))
                used_ms = used_s / (len(texts) * _FULL_LOAD_PASSES) * 1e3
                self._raw.write(Fact("processor_ms", contender.title, used_ms))
                self._raw.write(Fact("memory_mb", contender.title, memory_mb(started.pid)))
        except (ServerFailed, SampleFailed) as exc:
            self._failed.add(contender.title)
            self._raw.write(Fact("failed", contender.title, text=str(exc)))

    def _warm_up(self, contender: Contender) -> None:
        """Full load until that gets no quicker: workers and environments start, models load, caches fill."""
        before = 0.0
        for _ in range(_WARM_UP_PASSES):
            texts_per_s = self._full_load(contender, passes=1)
            if texts_per_s * _QUICKER < before:
                return
            before = texts_per_s

    def _full_load(self, contender: Contender, passes: int) -> float:
        """Texts that were answered per second, by as many callers at once as asked for."""
        begun = time.perf_counter()
        answered = send_closed(_load(contender, [*self._texts] * passes), self._options.concurrency)
        right = sum(record.status == 200 for record in answered.records)
        return right / (time.perf_counter() - begun)

    def _time(self, contender: Contender, what: str, ms: float, number: int, status: int = 200) -> None:
        conditions: dict[str, int | str] = {"what": what, "door": SERVER, "round": number, "status": status}
        self._raw.write(Timing(contender.title, conditions, ms))

    def _contenders(self) -> Iterator[Contender]:
        """Us and everyone, each with a port of this round."""
        model_dir = {"COLDFRAME_MODEL_DIR": str(self._options.model_dir.resolve())}
        yield ours(OURS_AUTO, '["auto"]', model_dir)
        yield ours(OURS_HEAD, '["logreg"]', model_dir | {"COLDFRAME_MAX_WINDOWS": "1"})
        for name, peer in self._peers.items():
            yield _contender(name, peer, self._options.environments / name)


def ours(title: str, heads: str, environ: Mapping[str, str]) -> Contender:
    """Our local API, asked for these heads."""
    port = free_port()
    body = f'{{"text": $TEXT, "heads": {heads}, "cache": false}}'
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COLDFRAME_")}
    return Contender(title, Server(local_api(port), ROOT, kept | dict(environ), port, "/v1/predict", body))


def _contender(name: str, peer: Peer, environment: Path) -> Contender:
    port = free_port()
    places = {
        "python": str(environment / "bin" / "python"),
        "bin": str(environment / "bin"),
        "port": str(port),
        "folder": str(PEERS_MODEL),
    }
    environ = _peer_environ() | {
        "PEER_PORT": str(port),
        "MLSERVER_HTTP_PORT": str(port),
        "MLSERVER_GRPC_PORT": str(free_port()),
        "MLSERVER_METRICS_PORT": str(free_port()),
    }
    command = [part.format(**places) for part in peer.command]
    return Contender(peer.title, Server(command, PEERS / name, environ, port, peer.path, peer.body))


def _peer_environ() -> dict[str, str]:
    """What every peer gets: where the model is, a worker per core, and no call to anyone outside."""
    cores = str(len(os.sched_getaffinity(0)))
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return kept | {
        "PEER_FOLDER": str(PEERS_MODEL),
        "PYTHONPATH": str(PEERS),
        "PEER_WORKERS": cores,
        "MLSERVER_PARALLEL_WORKERS": cores,
        "HF_HUB_OFFLINE": "1",
        "ORT_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "BENTOML_DO_NOT_TRACK": "1",
        "BENTOML_HOME": str(PEERS_MODEL / "bentoml"),
        "RAY_USAGE_STATS_ENABLED": "0",
    }


def _load(contender: Contender, texts: Sequence[str]) -> Load:
    server = contender.server
    bodies = [server.ask(text) for text in texts]
    return Load(contender.title, server.url, 0.0, [0.0] * len(bodies), bodies, timeout_s=60.0)


def _lambda_sample(environment: Path) -> float:
    """Milliseconds from spawning an interpreter to the first answer of the peer's Lambda handler."""
    event = json.loads((ROOT / "tests" / "events" / "http_api_predict.json").read_text())
    event |= {"rawPath": "/predict", "body": json.dumps({"text": sentences()[0]})}
    event["requestContext"]["http"]["path"] = "/predict"
    source = Program(load="from app import handler", door="handler").source(event, traced=False)
    folder = PEERS / "fastapi_mangum"
    taken = take(source, False, _peer_environ(), folder, environment / "bin" / "python")
    if taken.answer.get("statusCode") != 200:
        raise SampleFailed(f"The peer's handler answered {taken.answer.get('statusCode')}, expected 200.")
    return taken.total_ms


def _facts(options: CompareOptions) -> dict[str, object]:
    return {
        "rounds": options.rounds,
        "texts": options.texts,
        "concurrency": options.concurrency,
        "source": load_texts(1, options.seed).source,
    }
