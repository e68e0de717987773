"""The image, run as the manifests for Knative and Compose say.

https://github.com/knative/specs/blob/main/specs/serving/runtime-contract.md, read 2026-11-22: the container
listens on PORT, tells whether it is ready, takes the concurrency that it is given, and ends on SIGTERM.
"""

import http.client
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from coldframe.server.facts import DRAINED, HEALTH_COMMAND, LIVE, METRICS, READY
from coldframe_bench.benchmarks.from_zero import memory, start
from coldframe_bench.targets.container import docker
from coldframe_bench.targets.server_container import Answer, ServerContainer, revision, serving
from tests.conftest import ROOT
from tests.support.example import SPACE
from tests.test_docs import command_environ

pytestmark = [pytest.mark.containers, pytest.mark.docker]

PORT = 9191  # not the one that the image would take by itself
TEXT = {"text": "The shuttle reached orbit", "heads": ["mlp"], "cache": False}
LONG = {
    "texts": [
        f"{number} shuttles reached orbit, and the goalie saved forty shots. " * 16 for number in range(8)
    ],
    "heads": ["mlp"],
    "cache": False,
}
IN_WORK = 4
CALLERS = 16
TOKEN = "0123456789abcdef" * 4
PATIENT = {"COLDFRAME_OBJECTIVE_MS": "300000"}
"""A busy machine is slow, and the server would refuse what it cannot answer in time."""


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
    return "coldframe:server"


@pytest.fixture(scope="module")
def server(image: str) -> Iterator[ServerContainer]:
    """A container that is ready, as the manifest for Knative describes it."""
    with serving(image, PORT, PATIENT) as container:
        container.wait_ready()
        yield container


def wait_until(holds: Callable[[], bool]) -> None:
    """Polls; fails after a minute."""
    deadline_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline_s, "it never held"
        time.sleep(0.005)


def in_flight(container: ServerContainer) -> float:
    """Requests accepted and not yet answered, by the server's own metrics."""
    lines = container.ask("GET", METRICS).body.decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("coldframe_requests_in_flight "))


def test_listens_where_port_says(server: ServerContainer) -> None:
    """PORT decides, and nothing listens on the image's own port."""
    assert server.address[1] == PORT
    assert (
        json.loads(server.ask("POST", "/v1/predict", TEXT).body)["predictions"][0]["heads"]["mlp"]["label"]
        == SPACE
    )
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection(server.address[0], 8080, timeout=5).request("GET", LIVE)


def test_is_ready_once_it_answers(image: str) -> None:
    """While the model is loaded it lives and is not ready; once it is, the first request is answered."""
    with serving(image, PORT, PATIENT) as container:
        wait_until(lambda: container.status(LIVE) == 200)
        assert container.status(READY) in {200, 503}
        container.wait_ready()
        assert container.ask("POST", "/v1/predict", TEXT).status == 200


def test_runs_as_the_manifest_says(server: ServerContainer) -> None:
    """As the user of the manifest, without a capability, and with no folder that it can write to."""
    status = docker("exec", server.name, "cat", "/proc/1/status").splitlines()
    fields = {name: value.split() for name, _, value in (line.partition(":") for line in status)}
    assert set(fields["Uid"]) == {"993"}
    assert set(fields["Gid"]) == {"990"}
    assert int(fields["CapEff"][0], 16) == int(fields["CapBnd"][0], 16) == 0
    assert fields["NoNewPrivs"] == ["1"]
    assert fields["Seccomp"] == ["2"]  # a profile filters its system calls
    tried = "import os; os.open('/tmp/written', os.O_CREAT | os.O_WRONLY)"
    with pytest.raises(RuntimeError, match="Read-only file system"):
        docker("exec", server.name, "python3", "-c", tried)


def test_health_command_is_in_the_image(server: ServerContainer) -> None:
    """The command that Docker and ECS run asks at PORT."""
    docker("exec", server.name, *HEALTH_COMMAND)
    docker("exec", server.name, *HEALTH_COMMAND, "live")


def test_takes_the_concurrency_of_the_manifest(server: ServerContainer) -> None:
    """As many requests at once as Knative lets through are all answered, with the same answer."""
    count = revision()["containerConcurrency"]
    with ThreadPoolExecutor(count) as pool:
        answers = list(pool.map(lambda _: server.ask("POST", "/v1/predict", TEXT), range(count)))
    assert {answer.status for answer in answers} == {200}
    assert len({json.dumps(json.loads(answer.body)["predictions"]) for answer in answers}) == 1


def test_what_is_accepted_is_answered_after_sigterm(image: str) -> None:
    """Requests in work when SIGTERM comes get their answers, and the exit code is 0."""
    with serving(image, PORT, PATIENT) as container, ThreadPoolExecutor(CALLERS) as pool:
        container.wait_ready()
        asked = [pool.submit(container.ask, "POST", "/v1/predict", LONG) for _ in range(IN_WORK)]
        wait_until(lambda: in_flight(container) >= IN_WORK)
        docker("kill", "--signal=TERM", container.name)
        assert [future.result().status for future in asked] == [200] * IN_WORK
        assert container.exit_code() == DRAINED


def test_sigterm_under_load_loses_nothing(image: str) -> None:
    """Callers go on until readiness is false, as Kubernetes' do: each request is answered with 200."""
    noticed = {**PATIENT, "COLDFRAME_DRAIN_NOTICE_S": "2"}
    with serving(image, PORT, noticed) as container, ThreadPoolExecutor(CALLERS) as pool:
        container.wait_ready()
        unready, loaded = threading.Event(), threading.Event()

        def call() -> list[Answer]:
            answers = []
            while not unready.is_set():
                answers.append(container.ask("POST", "/v1/predict", TEXT))
                loaded.set()
            return answers

        callers = [pool.submit(call) for _ in range(CALLERS)]
        assert loaded.wait(60)
        docker("kill", "--signal=TERM", container.name)
        wait_until(lambda: container.status(READY) == 503)
        unready.set()
        answers = [answer for future in callers for answer in future.result()]
        assert {answer.status for answer in answers} == {200}
        assert container.exit_code() == DRAINED


def test_start_from_zero_is_measured(image: str) -> None:
    """`coldframe bench check from-zero`: it lives before it is ready, and is ready before it has answered."""
    found = start(image)
    assert 0 < found.live_ms <= found.ready_ms <= found.first_answer_ms


def test_memory_of_the_manifest_is_enough(image: str) -> None:
    """With as many requests at once as it is let have, the peak leaves a quarter of the memory free."""
    assert memory(image).peak_mb <= 0.75 * 1024


def test_compose_runs_the_file(image: str, tmp_path: Path) -> None:
    """Compose starts the service, a caller with a token is answered, and a stop drains the server."""
    described = yaml.safe_load((ROOT / "functions" / "server" / "manifests" / "compose.yaml").read_text())
    service = described["services"]["coldframe"]
    assert service["image"] == image
    service["ports"] = ["127.0.0.1::8080"]  # any port of this machine
    service["environment"] |= PATIENT
    (tmp_path / "coldframe-tokens").write_text(f"test:{TOKEN}\n")
    file = tmp_path / "compose.yaml"
    file.write_text(yaml.safe_dump(described))
    run = [*compose_command(), "--file", str(file), "--project-name", f"manifests-{os.getpid()}"]
    try:
        subprocess.run([*run, "up", "--detach"], check=True, capture_output=True)
        name = subprocess.run([*run, "ps", "-q"], check=True, capture_output=True, text=True).stdout.strip()
        container = ServerContainer(name, 8080)
        container.wait_ready()
        statuses = [container.ask("POST", "/v1/predict", TEXT, token).status for token in ("", TOKEN)]
        assert statuses == [401, 200]
        [facts] = json.loads(docker("inspect", name))
        assert facts["HostConfig"]["ReadonlyRootfs"]
        assert facts["HostConfig"]["CapDrop"] == ["ALL"]
        assert facts["HostConfig"]["Memory"] == 1024 * 2**20
        assert facts["Config"]["User"] == "993:990"
        subprocess.run([*run, "stop"], check=True, capture_output=True)
        [facts] = json.loads(docker("inspect", name))
        assert facts["State"]["ExitCode"] == DRAINED
    finally:
        subprocess.run([*run, "down", "--volumes"], check=True, capture_output=True)


def compose_command() -> list[str]:
    """Docker's plugin, or the program that Debian 12 has; without one the test is skipped."""
    if subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0:
        return ["docker", "compose"]
    if shutil.which("docker-compose") is None:
        pytest.skip("no Docker Compose: its file was checked against the schema only")
    return ["docker-compose"]
