"""The image of the server, run as a careful platform runs it: read-only, without capabilities, as nobody."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from coldframe_bench.targets.container import docker
from tests.conftest import ROOT
from tests.test_docs import command_environ

pytestmark = [pytest.mark.containers, pytest.mark.docker]

IMAGE = "coldframe:server"
CAREFUL = (
    "--env=COLDFRAME_ALLOW_ANYONE=true",
    "--read-only",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--memory=1g",
    "--memory-swap=1g",
)
OURS_BUDGET_BYTES = 220_000_000
PATIENCE_S = 60
PREDICT = {"texts": ["The shuttle reached orbit"], "heads": ["auto", "mlp"], "cache": False}

# Tries to make a file in every folder; prints those where that works.
WRITE_EVERYWHERE = """
import json, os
writable = []
for folder, folders, _ in os.walk("/"):
    folders[:] = [name for name in folders if os.path.join(folder, name) not in ("/proc", "/sys")]
    path = os.path.join(folder, "written")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    except OSError:
        continue
    os.unlink(path)
    writable.append(folder)
print(json.dumps([os.getuid(), os.getgid(), writable]))
"""


@pytest.fixture(scope="module")
def image(containers: None, bundle: Path) -> str:
    """The image as `make image-server` builds it."""
    done = subprocess.run(
        ["make", "image-server"],
        cwd=ROOT,
        env=command_environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return IMAGE


@contextmanager
def running(image: str, *options: str) -> Iterator[tuple[str, httpx.Client]]:
    """A container's name, and a client of its port; removed afterwards."""
    port = next((option.rpartition("=")[2] for option in options if option.startswith("--env=PORT=")), "8080")
    name = docker("run", "--detach", f"--publish=127.0.0.1::{port}", *CAREFUL, *options, image).strip()
    try:
        published = docker("port", name, f"{port}/tcp").splitlines()[0].rpartition(":")[2]
        url = f"http://127.0.0.1:{published}"
        with httpx.Client(base_url=url, timeout=PATIENCE_S, trust_env=False) as client:
            yield name, client
    finally:
        docker("rm", "--force", "--volumes", name)


def wait_until_ready(name: str, client: httpx.Client) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            if client.get("/v2/health/ready").status_code == 200:
                return
        except httpx.TransportError:
            assert json.loads(docker("inspect", name))[0]["State"]["Running"], docker("logs", name)
        assert time.monotonic() < deadline_s, docker("logs", name)
        time.sleep(0.05)


@pytest.fixture(scope="module")
def container(image: str) -> Iterator[tuple[str, httpx.Client]]:
    """A server that is ready."""
    with running(image) as (name, client):
        wait_until_ready(name, client)
        yield name, client


def test_it_serves_as_nobody_and_writes_nowhere(container: tuple[str, httpx.Client]) -> None:
    """Read-only, no capability, uid 993: every kind of route answers; no folder of ours takes a file."""
    name, client = container
    answer = client.post("/v1/predict", json=PREDICT).json()
    assert answer["predictions"][0]["heads"]["auto"]["label"] == "sci.space"
    embedded = client.post("/v1/embeddings", json={"input": "Orbit"})
    tensor = {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["Orbit"]}
    inferred = client.post("/v2/models/topics-mlp/infer", json={"inputs": [tensor]})
    pages = [client.get(path) for path in ("/docs", "/openapi.json", "/metrics", "/healthz", "/v1/models")]
    assert {reply.status_code for reply in [embedded, inferred, *pages]} == {200}
    uid, gid, writable = json.loads(docker("exec", name, "python3", "-c", WRITE_EVERYWHERE))
    assert (uid, gid) == (993, 990)
    assert {folder.split("/")[1] for folder in writable} <= {"dev"}  # Docker's own


def test_any_user_may_run_it(image: str) -> None:
    """Platforms that choose a user of their own, and a port: PORT is obeyed."""
    with running(image, "--user=54321:54321", "--env=PORT=9999") as (name, client):
        wait_until_ready(name, client)
        assert client.post("/v1/predict", json=PREDICT).status_code == 200


def test_health_check_is_a_command_of_the_image(container: tuple[str, httpx.Client]) -> None:
    """Ready and live by the command; not ready where nobody listens."""
    name, _ = container
    docker("exec", name, "python3", "-m", "coldframe.server.health")
    docker("exec", name, "python3", "-m", "coldframe.server.health", "live")
    with pytest.raises(RuntimeError):
        docker("exec", "--env=PORT=1", name, "python3", "-m", "coldframe.server.health")


def test_it_ends_well_as_first_process_of_its_container(image: str) -> None:
    """`docker stop`: drained, exit code 0; its log has no line that is no JSON."""
    with running(image) as (name, client):
        wait_until_ready(name, client)
        docker("stop", "--time=30", name)
        [state] = json.loads(docker("inspect", name))
        assert state["State"]["ExitCode"] == 0
        events = [json.loads(line)["event"] for line in docker("logs", name).splitlines()]
        assert [event for event in events if event != "request"] == ["listening", "ready", "leaving", "ended"]


def test_a_container_without_callers_ends(image: str) -> None:
    """Without tokens, and without a word that anyone may call: the error names both ways out."""
    with running(image, "--env=COLDFRAME_ALLOW_ANYONE=false") as (name, _):
        assert docker("wait", name).strip() == "1"
        said = docker("logs", name, stderr=subprocess.STDOUT)
        assert said.startswith("BadSetting: COLDFRAME_HOST or --host is 0.0.0.0: other machines")


def test_a_wrong_setting_ends_the_container(image: str) -> None:
    """Exit code 1, and one line that names the setting."""
    with running(image, "--env=COLDFRAME_WORKERS=none") as (name, _):
        assert docker("wait", name).strip() == "1"
        said = docker("logs", name, stderr=subprocess.STDOUT)
        assert said.startswith("BadSetting: COLDFRAME_WORKERS='none' cannot be used")
        assert len(said.splitlines()) == 1


def test_weight_is_within_budget(image: str) -> None:
    """What is ours: at most 220 MB on top of the base."""
    [facts] = json.loads(docker("image", "inspect", image))
    [base] = json.loads(
        docker("image", "inspect", facts["Config"]["Labels"]["org.opencontainers.image.base.name"])
    )
    assert facts["Size"] - base["Size"] <= OURS_BUDGET_BYTES
    assert facts["Config"]["User"] == "993:990"
