"""Contenders of a comparison: our local API, and peers as `bench/peers/peers.toml` describes them."""

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
from msgspec import Struct

from coldframe.cpus import usable_cpus
from coldframe_bench.targets.environments import PEERS, PEERS_MODEL
from coldframe_bench.targets.serving import Server, free_port, local_api
from coldframe_local.paths import ROOT, models

BATCH, BATCH_WAIT_S = 32, 0.005
"""Batching of servers that put requests together: requests in a batch, and how long the first one waits."""


_BATCHES = {
    "PEER_BATCH": str(BATCH),
    "PEER_BATCH_WAIT_S": str(BATCH_WAIT_S),
    "MLSERVER_MODEL_MAX_BATCH_SIZE": str(BATCH),
    "MLSERVER_MODEL_MAX_BATCH_TIME": str(BATCH_WAIT_S),
}


class Peer(Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of peers.toml. In `command`, {python}, {bin}, {port} and {folder} are filled in.

    batched: there for a peer that can put requests together; the fields of the entry that are different then.
    """

    title: str
    command: list[str]
    path: str
    body: str
    needs_torch: bool = False
    batched: dict[str, str | list[str]] | None = None

    def batching(self, name: str, environment: Path) -> Server:
        """As `server`, with requests put together."""
        server = msgspec.structs.replace(self, **(self.batched or {})).server(name, environment)
        return replace(server, environ={**server.environ, **_BATCHES})

    def server(self, name: str, environment: Path) -> Server:
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
        return Server(command, PEERS / name, environ, port, self.path, self.body, self.title)


def load_peers() -> dict[str, Peer]:
    """All peers, by the name of their folder."""
    return msgspec.toml.decode((PEERS / "peers.toml").read_bytes(), type=dict[str, Peer])


def ours(title: str, heads: str, model_dir: Path, environ: Mapping[str, str] | None = None) -> Server:
    """Our local API, asked for these heads. environ: settings beside the model's."""
    port = free_port()
    body = f'{{"text": $TEXT, "heads": {heads}, "cache": false}}'
    settings = _settings(model_dir) | dict(environ or {})
    return Server(local_api(port), ROOT, settings, port, "/v1/predict", body, title)


def own_server(title: str, model_dir: Path, environ: Mapping[str, str]) -> Server:
    """`coldframe serve`, asked for one head, without its cache. environ: settings beside the model's."""
    port = free_port()
    settings = _settings(model_dir) | {"PORT": str(port), "COLDFRAME_LOG_LEVEL": "off", **environ}
    command = [str(Path(sys.executable).parent / "coldframe"), "serve"]
    body = '{"text": $TEXT, "heads": ["logreg"], "cache": false}'
    return Server(command, ROOT, settings, port, "/v1/predict", body, title)


def _settings(model_dir: Path) -> dict[str, str]:
    """This process's environment, with the model's settings alone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COLDFRAME_")}
    return kept | {"COLDFRAME_MODEL_DIR": str(model_dir.resolve()), "COLDFRAME_MODELS": models()}


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
