"""`sam build` and `sam local`, run for real: SAM, the emulator and the hardened container agree."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coldframe_bench.benchmarks.cold.elsewhere import run_http
from coldframe_bench.benchmarks.cold.measure import ColdOptions
from coldframe_bench.benchmarks.image import sizes
from coldframe_bench.records.raw_files import Cold, Fact, read_results
from coldframe_bench.targets.container import Container, docker
from coldframe_bench.targets.serving import free_port
from tests.conftest import ROOT
from tests.integration.conftest import BuiltImage
from tests.integration.requests_of_all_routes import REQUESTS, Asked, answer_of, ask_container
from tests.support.example import SPACE
from tests.test_docs import command_environ

pytestmark = [pytest.mark.containers, pytest.mark.docker, pytest.mark.sam]

SAM = ROOT / "local" / "tools" / "sam.sh"


@pytest.fixture(scope="module")
def built(image: str) -> None:
    """`sam build`; most of it is in Docker's cache already."""
    done = subprocess.run([SAM, "build"], cwd=ROOT, env=command_environ(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def listening(command: list[str], line: str) -> Iterator[int]:
    """A server that says on which port it listens; ended by SIGTERM, and then nothing of it is left."""
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=command_environ(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        output = []
        for found in process.stdout or ():
            output.append(found)
            if port := re.search(line, found):
                break
        else:
            pytest.fail("".join(output))
        reader = threading.Thread(target=process.stdout.read)  # type: ignore[union-attr]
        reader.start()
        try:
            yield int(port[1])
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)
            reader.join()
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@contextmanager
def serving(*variables: str) -> Iterator[int]:
    """`sam local start-api`, with environment variables; nothing is left of it."""
    before = containers()
    command = ["env", *variables, str(SAM), "start-api", "--port", str(free_port())]
    with listening(command, r"Running on http://127\.0\.0\.1:(\d+)") as port:
        yield port
    assert containers() == before


def containers() -> str:
    """Those that SAM has started."""
    return docker("ps", "--all", "--quiet", "--filter=label=sam.cli.container.type=lambda")


@pytest.fixture(scope="module")
def sam(built: None) -> Iterator[int]:
    """The same for all requests: its container stays warm."""
    with serving() as port:
        yield port


@pytest.fixture(scope="module")
def emulator(bundle: Path) -> Iterator[int]:
    """`coldframe up`."""
    command = [sys.executable, "-m", "coldframe_local.cli", "up", "--port", "0"]
    with listening(command, r"listening on http://127\.0\.0\.1:(\d+)") as port:
        yield port


def ask(port: int, asked: Asked) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        headers = {"content-type": "application/json"} if asked.content else {}
        connection.request(asked.method, asked.path, asked.content or None, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def sam_output(*arguments: str, stdin: str = "") -> str:
    """What a command of the SAM CLI prints."""
    done = subprocess.run(
        [SAM, *arguments], cwd=ROOT, env=command_environ(), input=stdin, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def invoke(event: str) -> dict[str, Any]:
    """What the function returns for an event, by `sam local invoke`."""
    result: dict[str, Any] = json.loads(sam_output("invoke", "--event", "-", stdin=event))
    return result


@pytest.mark.parametrize("asked", REQUESTS, ids=str)
def test_same_answer_everywhere(emulator: int, sam: int, container: Container, asked: Asked) -> None:
    """The emulator, SAM and the hardened container give the same answer to the same request."""
    status, body = ask(emulator, asked)
    by_sam, reply = ask(sam, asked), ask_container(container, asked)
    assert status == by_sam[0] == reply.status == asked.status
    assert answer_of(by_sam[1]) == answer_of(body)
    assert answer_of(reply.body) == answer_of(body)


def test_cold_starts_behind_sam(built: None, bundle: Path, tmp_path: Path) -> None:
    """`coldframe bench cold --url`: without warm containers `sam local` starts one for every request."""
    options = ColdOptions(bundle, 1, 0, tmp_path / "cold.jsonl")
    with serving("WARM_CONTAINERS=") as port:
        results = read_results(run_http(options, f"http://127.0.0.1:{port}", idle_s=0))
    assert [sample.by for sample in results.of(Cold)] == ["estimator", "ensemble"]
    assert [fact.value for fact in results.of(Fact) if fact.name == "warm_answers"] == [0]


@pytest.mark.parametrize("kind", ["http-api-proxy", "aws-proxy"])
def test_generated_event(built: None, kind: str) -> None:
    """`sam local invoke` answers the events of both kinds of API that SAM itself generates."""
    body = '{"text": "The shuttle reached orbit"}'
    request = ["--method", "POST", "--path", "v1/predict", "--body", body]
    answer = invoke(sam_output("generate-event", "apigateway", kind, *request))
    assert answer["statusCode"] == 200
    assert json.loads(answer["body"])["predictions"][0]["heads"]["auto"]["label"] == SPACE


def test_event_of_another_source_is_refused(built: None) -> None:
    """An event that is no API Gateway event is an error that says what was expected."""
    answer = invoke(sam_output("generate-event", "sqs", "receive-message"))
    assert answer["errorType"] == "ValueError"
    assert "expected payload 2.0" in answer["errorMessage"]


def test_sam_builds_for_arm64(image: str, arm64: BuiltImage, tmp_path: Path) -> None:
    """`sam build --use-buildkit` makes the image of the template's default, arm64, on any machine."""
    if subprocess.run(["docker", "buildx", "version"], capture_output=True).returncode:
        pytest.skip("no buildx: SAM's --use-buildkit needs it")
    # AWS's base has one name for all architectures, the stand-ins have one for each.
    argument, tag = "LAMBDA_BASE: !Ref LambdaBase", "DockerTag: serve"
    template = (ROOT / "template.yaml").read_text()
    assert argument in template
    assert tag in template
    builder = f"{argument}\n        BUILDER_BASE: {sizes(image).base}"
    (tmp_path / "template.yaml").write_text(
        template.replace(argument, builder).replace(tag, "DockerTag: for-arm64")
    )
    command: list[str | Path] = [
        *(ROOT / ".venv-sam/bin/sam", "build", "PredictFunction", "--use-buildkit", "--base-dir", ROOT),
        *("--template", tmp_path / "template.yaml", "--build-dir", tmp_path / "built"),
        *("--parameter-overrides", f"LambdaBase={sizes(arm64.image).base}"),
    ]
    region = {"AWS_DEFAULT_REGION": "us-east-1", "SAM_CLI_TELEMETRY": "0"}
    done = subprocess.run(command, env=command_environ() | region, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    [facts] = json.loads(docker("image", "inspect", "predictfunction:for-arm64"))
    docker("image", "rm", "predictfunction:for-arm64")
    assert facts["Architecture"] == "arm64"
