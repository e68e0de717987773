"""Contenders of a comparison: our local API, and peers as `bench/peers/peers.toml` describes them."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.targets.environments import PEERS, PEERS_MODEL
from bench.targets.serving import Server, free_port, local_api
from coldframe.cpus import usable_cpus
from local.paths import ROOT, models

BATCH, BATCH_WAIT_S = 32, 0.005
"""Batching of servers that put requests together: requests in a batch, and how long the first one waits."""


class Batched(Struct, frozen=True, forbid_unknown_fields=True):
    """How a peer is started and asked where it puts requests together; empty: as where it does not."""

    command: list[str] = []
    path: str = ""
    body: str = ""


class Peer(Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of peers.toml. In `command`, {python}, {bin}, {port} and {folder} are filled in.

    batched: there for a peer that can put requests together.
    """

    title: str
    command: list[str]
    path: str
    body: str
    needs_torch: bool = False
    batched: Batched | None = None

    def batching(self, name: str, environment: Path) -> "Contender":
        """As `contender`, with requests put together."""
        how = self.batched or Batched()
        peer = Peer(self.title, how.command or self.command, how.path or self.path, how.body or self.body)
        server = peer.contender(name, environment).server
        batches = {
            "PEER_BATCH": str(BATCH),
            "PEER_BATCH_WAIT_S": str(BATCH_WAIT_S),
            "MLSERVER_MODEL_MAX_BATCH_SIZE": str(BATCH),
            "MLSERVER_MODEL_MAX_BATCH_TIME": str(BATCH_WAIT_S),
        }
        return Contender(self.title, replace(server, environ={**server.environ, **batches}))

    def contender(self, name: str, environment: Path) -> "Contender":
        """This peer on a port of its own. name: its folder; environment: where it is installed."""
        port = free_port()
        places = {
            "python": str(environment / "bin" / "python"),
            "bin": str(environment / "bin"),
            "port": str(port),
            "folder": str(PEERS_MODEL),
        }
        environ = peer_environ() | {
            "PEER_PORT": str(port),
            "MLSERVER_HTTP_PORT": str(port),
            "MLSERVER_GRPC_PORT": str(free_port()),
            "MLSERVER_METRICS_PORT": str(free_port()),
        }
        command = [part.format(**places) for part in self.command]
        return Contender(self.title, Server(command, PEERS / name, environ, port, self.path, self.body))


@dataclass(frozen=True)
class Contender:
    """A server that takes part, under its title in tables."""

    title: str
    server: Server


def load_peers() -> dict[str, Peer]:
    """All peers, by the name of their folder."""
    return msgspec.toml.decode((PEERS / "peers.toml").read_bytes(), type=dict[str, Peer])


def ours(title: str, heads: str, environ: Mapping[str, str]) -> Contender:
    """Our local API, asked for these heads. environ: settings beside those of this process."""
    port = free_port()
    body = f'{{"text": $TEXT, "heads": {heads}, "cache": false}}'
    environ = _without_settings() | dict(environ)
    return Contender(title, Server(local_api(port), ROOT, environ, port, "/v1/predict", body))


def own_server(model_dir: Path, environ: Mapping[str, str]) -> Server:
    """`coldframe serve`, asked for one head, without its cache. environ: settings beside the model's."""
    port = free_port()
    settings = {
        "PORT": str(port),
        "COLDFRAME_MODEL_DIR": str(model_dir.resolve()),
        "COLDFRAME_MODELS": models(),
        "COLDFRAME_LOG_LEVEL": "off",
    }
    command = [str(Path(sys.executable).parent / "coldframe"), "serve"]
    body = '{"text": $TEXT, "heads": ["logreg"], "cache": false}'
    environ = _without_settings() | settings | dict(environ)
    return Server(command, ROOT, environ, port, "/v1/predict", body)


def _without_settings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("COLDFRAME_")}


def peer_environ() -> dict[str, str]:
    """Environment of every peer: the model's folder, a worker per core, and no calls to other machines."""
    cores = str(usable_cpus())
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
