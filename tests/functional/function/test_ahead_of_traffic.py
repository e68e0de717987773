"""Environments that are initialized ahead of traffic: primed, and with SnapStart restored from a snapshot."""

import json
import os
import random
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from coldframe.api.api import Api, Request
from coldframe_bench.targets.faulty_server import Exchange, FaultyServer
from coldframe_functions.predict.priming import prime
from coldframe_functions.predict.snapshot import after_restore
from tests.conftest import ROOT
from tests.functional.cache.test_shared_cache import environ_of
from tests.functional.function.test_predict_function import HTTP, to

INIT_TYPES = ["provisioned-concurrency", "snap-start"]

# Loads the function, then answers events; prints what was imported, before and by that.
IMPORTS = """
import json, sys
from types import SimpleNamespace
from coldframe_functions.predict.app import handler
before = set(sys.modules)
context = SimpleNamespace(aws_request_id="1", get_remaining_time_in_millis=lambda: 29_000)
starts = []
for event in json.loads(sys.stdin.read()):
    answer = handler(event, context)
    assert answer["statusCode"] == 200, answer
    starts.append(json.loads(answer["body"])["start"] if event["rawPath"] == "/v1/predict" else None)
print(json.dumps({"before": sorted(before), "after": sorted(set(sys.modules) - before), "starts": starts}))
"""


def loaded(bundle: Path, initialization_type: str) -> tuple[dict[str, Any], list[str]]:
    """What a fresh process imports for requests of several kinds, and the lines of its log."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS],
        input=json.dumps([HTTP, to(HTTP, "GET", "/docs"), to(HTTP, "GET", "/openapi.json")]),
        env={
            "PATH": os.environ["PATH"],
            "COLDFRAME_MODEL_DIR": str(bundle),
            "AWS_LAMBDA_INITIALIZATION_TYPE": initialization_type,
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    *log, found = done.stdout.splitlines()
    return json.loads(found), log


@pytest.mark.parametrize("initialization_type", INIT_TYPES)
def test_nothing_is_left_to_import(bundle: Path, initialization_type: str) -> None:
    """Ahead of traffic the init phase imports all that answers need, and logs no request of its own."""
    found, log = loaded(bundle, initialization_type)
    assert {"fastapi", "mangum", "coldframe.graphs.c_library"} <= set(found["before"])
    assert found["after"] == []
    assert found["starts"] == ["warm", None, None]
    assert [json.loads(line)["path"] for line in log] == ["/v1/predict"]


def test_on_demand_does_the_least(bundle: Path) -> None:
    """An environment that somebody waits for imports no framework before one is asked for."""
    found, _ = loaded(bundle, "on-demand")
    assert not {"fastapi", "mangum", "boto3"} & set(found["before"])
    assert "fastapi" in found["after"]
    assert found["starts"] == ["cold", None, None]


def test_what_cannot_answer_gets_no_traffic() -> None:
    """A function that answers its own requests with an error does not leave the init phase."""
    with pytest.raises(RuntimeError, match="GET /v1/models was answered with 503"):
        prime(lambda event, context: {"statusCode": 503, "headers": {}, "body": ""})


class RuntimeApi(ThreadingHTTPServer):
    """Lambda's Runtime API as SnapStart uses it, and the address that credentials come from."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _RuntimeApiRequest)
        self.key_id = "KEYBEFORE"
        self.snapshot = threading.Event()
        self.restored = threading.Event()
        self.events = SimpleQueue[dict[str, Any]]()
        self.results = SimpleQueue[dict[str, Any]]()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def invoke(self, event: dict[str, Any]) -> dict[str, Any]:
        """What the function returns for an event."""
        self.events.put(event)
        return self.results.get(timeout=30)


class _RuntimeApiRequest(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: RuntimeApi

    def do_GET(self) -> None:
        if self.path == "/credentials":
            key = {"AccessKeyId": self.server.key_id, "SecretAccessKey": "secret", "Token": "token"}
            self._answer(200, {**key, "Expiration": "2099-01-01T00:00:00Z"})
        elif self.path.endswith("/restore/next"):
            self.server.snapshot.set()
            self.server.restored.wait()
            self._answer(200, {})
        else:
            self._answer(200, self.server.events.get())

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.results.put(json.loads(content))
        self._answer(202, {})

    def _answer(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Lambda-Runtime-Aws-Request-Id", "1")
        self.send_header("Lambda-Runtime-Deadline-Ms", "4000000000000")
        self.send_header("Lambda-Runtime-Invoked-Function-Arn", "arn")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def runtime_client(api: RuntimeApi, environ: dict[str, str]) -> Iterator[int]:
    """AWS's runtime client with our function, told that a snapshot will be taken."""
    without_keys = {name: value for name, value in environ.items() if "KEY" not in name}
    snap_start = {
        "PATH": os.environ["PATH"],
        "AWS_LAMBDA_RUNTIME_API": api.address,
        "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://{api.address}/credentials",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "awslambdaric", "coldframe_functions.predict.app.handler"],
        cwd=ROOT,
        env=without_keys | snap_start,
        stdout=subprocess.DEVNULL,
    ) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.fixture
def runtime_api() -> Iterator[RuntimeApi]:
    with RuntimeApi() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.restored.set()
        server.shutdown()
        thread.join()


def connections(pid: int, port: int) -> int:
    """How many open TCP connections a process has to a local port."""
    links = [link.readlink() for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()]
    sockets = {found[1] for link in links if (found := re.match(r"socket:\[(\d+)\]", str(link)))}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[9] in sockets and int(row[2].rpartition(":")[2], 16) == port for row in rows)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the connections of a process from /proc")
def test_snapshot_holds_no_connection_and_no_credentials(
    bundle: Path, aws_environ: dict[str, str], store: FaultyServer, runtime_api: RuntimeApi
) -> None:
    """AWS's client runs the hooks: connections are closed; what is restored signs with new credentials."""
    signed_by = []

    def remember(exchange: Exchange) -> bool:
        found = re.search(r"Credential=(\w+)/", exchange.headers["authorization"])
        assert found
        signed_by.append(found[1])
        return False

    store.fault = remember
    with runtime_client(runtime_api, environ_of(bundle, aws_environ)) as pid:
        assert runtime_api.snapshot.wait(timeout=60)
        before = len(signed_by)
        assert set(signed_by) == {"KEYBEFORE"}  # it connected before the snapshot
        assert connections(pid, store.server_port) == 0
        runtime_api.key_id = "KEYAFTER"
        runtime_api.restored.set()
        answer = runtime_api.invoke(HTTP)
        assert connections(pid, store.server_port) == 1
    assert json.loads(answer["body"])["start"] == "warm"
    assert set(signed_by[before:]) == {"KEYAFTER"}


def test_twins_do_not_draw_the_same_numbers(api: Api) -> None:
    """Two environments restored from one snapshot go different ways."""
    snapshot = random.getstate()
    drawn = []
    for _ in range(2):
        random.setstate(snapshot)
        after_restore(api)
        drawn.append(random.random())
    assert drawn[0] != drawn[1]


def test_restored_environment_has_a_new_birthday(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """`created` is the time of the restore, not that of the snapshot."""
    monkeypatch.setattr("coldframe.api.api.time.time", lambda: 4_000_000_000.0)
    after_restore(api)
    answer = json.loads(api.answer(Request("GET", "/v1/models")).body)
    assert {model["created"] for model in answer["data"]} == {4_000_000_000}
