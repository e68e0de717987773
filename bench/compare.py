"""Peers side by side: each in its own environment, the same model, texts and cores, in one run."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import msgspec
from msgspec import Struct
from tqdm import tqdm

from bench.cold import ENCODER, ESTIMATOR, ColdOptions, one_sample
from bench.cores import loader_core, target_cores
from bench.machine import describe_run
from bench.open_loop import Load, send_closed
from bench.records import Fact, RawFile, Timing
from bench.samples import Program, SampleFailed, take
from bench.serving import Server, ServerFailed, free_port, memory_mb, serve
from bench.texts import load_texts, sentences
from coldframe.errors import ColdframeError
from local.paths import ROOT

PEERS = Path(__file__).with_name("peers")
ENVIRONMENTS = ROOT / ".venv-peers"
FOLDER = ROOT / ".cache" / "peers"
OURS_AUTO = "coldframe, `auto`"
OURS_HEAD = "coldframe, `logreg`, one window"
HOT_PATH = "in process"
SERVER = "server"
_BUILD_PYTHON = ROOT / ".venv-build" / "bin" / "python"
_TORCH = "torch==2.13.0"
_WARM_UP = 20


class PeersMissing(ColdframeError):
    """What peers need cannot be made."""


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
        _prepare_model()
        ready = {}
        for name, peer in peers.items():
            reason = _install(options.environments / name, name, peer)
            if reason:
                raw.write(Fact("not installed", peer.title, text=reason))
            else:
                ready[name] = peer
                raw.write(Fact("installed_mb", peer.title, _folder_mb(options.environments / name)))
        raw.write(Fact("installed_mb", OURS_AUTO, _installed_mb_of(ROOT / "functions" / "requirements.txt")))
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
            with target_cores(), serve(server, sentences()[0]) as started:
                self._time(contender, "cold", started.cold_ms, number)
                with loader_core():
                    send_closed(_load(contender, texts[:_WARM_UP]), self._options.concurrency)
                    for record in send_closed(_load(contender, texts), 1).records:
                        self._time(contender, "warm", record.latency_ms, number, record.status)
                    begun = time.perf_counter()
                    answered = send_closed(_load(contender, texts), self._options.concurrency)
                    spent_s = time.perf_counter() - begun
                right = sum(record.status == 200 for record in answered.records)
                self._raw.write(Fact("texts_per_s", contender.title, right / spent_s))
                self._raw.write(Fact("memory_mb", contender.title, memory_mb(started.pid)))
        except (ServerFailed, SampleFailed) as exc:
            self._failed.add(contender.title)
            self._raw.write(Fact("failed", contender.title, text=str(exc)))

    def _time(self, contender: Contender, what: str, ms: float, number: int, status: int = 200) -> None:
        conditions: dict[str, int | str] = {"what": what, "door": SERVER, "round": number, "status": status}
        self._raw.write(Timing(contender.title, conditions, ms))

    def _contenders(self) -> Iterator[Contender]:
        """Us and everyone, each with a port of this round."""
        model_dir = {"COLDFRAME_MODEL_DIR": str(self._options.model_dir.resolve())}
        yield _ours(OURS_AUTO, '["auto"]', model_dir)
        yield _ours(OURS_HEAD, '["logreg"]', model_dir | {"COLDFRAME_MAX_WINDOWS": "1"})
        for name, peer in self._peers.items():
            yield _contender(name, peer, self._options.environments / name)


def _ours(title: str, heads: str, environ: Mapping[str, str]) -> Contender:
    port = free_port()
    command = [str(Path(sys.executable).parent / "coldframe"), "up", "--port", str(port)]
    body = f'{{"text": $TEXT, "heads": {heads}, "cache": false}}'
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COLDFRAME_")}
    return Contender(title, Server(command, ROOT, kept | dict(environ), port, "/v1/predict", body))


def _contender(name: str, peer: Peer, environment: Path) -> Contender:
    port = free_port()
    places = {
        "python": str(environment / "bin" / "python"),
        "bin": str(environment / "bin"),
        "port": str(port),
        "folder": str(FOLDER),
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
    """What every peer gets: where the model is, one thread per core, and no call to anyone outside."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return kept | {
        "PEER_FOLDER": str(FOLDER),
        "PYTHONPATH": str(PEERS),
        "HF_HUB_OFFLINE": "1",
        "ORT_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "BENTOML_DO_NOT_TRACK": "1",
        "BENTOML_HOME": str(FOLDER / "bentoml"),
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


def _prepare_model() -> None:
    """What all peers serve, made once. Raises PeersMissing where the build environment is not there."""
    if (FOLDER / "head.joblib").exists():
        return
    if not _BUILD_PYTHON.exists():
        raise PeersMissing(
            f"{_BUILD_PYTHON} is missing: peers' model is exported there. Run `make build` first."
        )
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = f"{ROOT}{os.pathsep}{ROOT / 'layers' / 'shared' / 'python'}"
    command = [str(_BUILD_PYTHON), "-m", "bench.peers.prepare", str(FOLDER)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    if done.returncode:
        raise PeersMissing(f"The model for peers cannot be made: {done.stderr.strip()[-800:]}")


def _install(environment: Path, name: str, peer: Peer) -> str:
    """Makes a peer's environment where it is not there; why that failed, or nothing."""
    python = environment / "bin" / "python"
    if python.exists():
        return ""
    print(f"==> {environment}: {peer.title}", file=sys.stderr, flush=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    steps = [[sys.executable, "-m", "venv", str(environment)]]
    if peer.needs_torch:  # the CPU build first, or pip takes the one with CUDA
        steps.append([str(python), str(ROOT / "layers" / "model" / "install_torch.py"), _TORCH])
    steps.append([*pip, "--requirement", str(PEERS / name / "requirements.txt")])
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            (environment / "bin" / "python").unlink(missing_ok=True)  # so that the next run tries again
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            return " ".join(errors or done.stderr.splitlines()[-1:])
    return ""


def _folder_mb(environment: Path) -> float:
    """Size of all that is installed, without pip."""
    (packages,) = environment.glob("lib/python3*/site-packages")
    files = (file for file in packages.rglob("*") if file.is_file() and not file.is_symlink())
    return sum(file.stat().st_size for file in files if not _is_of_pip(file, packages)) / 1e6


def _is_of_pip(file: Path, packages: Path) -> bool:
    return file.relative_to(packages).parts[0].startswith(("pip", "setuptools"))


def _installed_mb_of(requirements: Path) -> float:
    """Size of the packages that a lock file names, as they are installed here."""
    names = [line.partition("==")[0] for line in requirements.read_text().splitlines() if "==" in line]
    return sum(_distribution_mb(name) for name in names if not name.startswith((" ", "#")))


def _distribution_mb(name: str) -> float:
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:  # of another platform
        return 0.0
    paths = (Path(str(file.locate())) for file in files)
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def _facts(options: CompareOptions) -> dict[str, object]:
    return {
        "rounds": options.rounds,
        "texts": options.texts,
        "concurrency": options.concurrency,
        "source": load_texts(1, options.seed).source,
    }
