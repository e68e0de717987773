"""Releases of models and real servers: exchanged under load, rolled back, refused; in folders and in S3."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from msgspec.structs import replace

from coldframe.model.bundle import describe_file, load_manifest
from coldframe.releases.place import FolderPlace, Pointer, PointerChanged, open_place
from coldframe.releases.publishing import roll_back
from coldframe.server import facts
from tests.conftest import EXAMPLE
from tests.support.example import publish_folder, relabelled
from tests.support.server_process import PATIENCE_S, ROOT, ServerProcess, serving, starting

pytestmark = pytest.mark.waits

NEVER = "86400"
"""Seconds between two looks: in these tests a signal asks."""
EXCHANGES = 20


@pytest.fixture(scope="module")
def versions(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two versions of the example, whose labels end differently."""
    folder = tmp_path_factory.mktemp("versions")
    return relabelled(bundle, folder / "one", "-1"), relabelled(bundle, folder / "two", "-2")


@pytest.fixture
def place(tmp_path: Path) -> FolderPlace:
    return FolderPlace(tmp_path / "place")


def followed(place: str, **environ: str) -> dict[str, str]:
    return {"COLDFRAME_RELEASES": place, "COLDFRAME_RELEASES_CHECK_S": NEVER, **environ}


def wait_for(server: ServerProcess, event: str, number: int) -> dict[str, Any]:
    """The line of the event's occurrence `number`, from 1."""
    ends_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends_s:
        lines = [line for line in list(server.lines) if line.get("event") == event]
        if len(lines) >= number:
            return lines[number - 1]
        assert server.process.poll() is None
        time.sleep(0.01)
    pytest.fail(f"no {event} number {number} in {server.lines}")


def tell(server: ServerProcess) -> None:
    server.process.send_signal(signal.SIGHUP)


class Callers:
    """Threads that send requests until the block ends, and what came back."""

    def __init__(self, server: ServerProcess, number: int) -> None:
        self.answers: list[tuple[int, str, frozenset[str]]] = []
        self._server = server
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(n,)) for n in range(number)]

    def __enter__(self) -> "Callers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def _call(self, thread: int) -> None:
        number = 0
        with self._server.client() as client:
            while not self._ends.is_set():
                number += 1
                texts = [f"the shuttle reached orbit {number % 40} {thread}", "forty saves"]
                reply = client.post("/v1/predict", json={"texts": texts, "heads": ["auto", "logreg"]})
                self.answers.append((reply.status_code, *version_and_labels(reply.json())))


def version_and_labels(body: dict[str, Any]) -> tuple[str, frozenset[str]]:
    """The version that an answer names, and the ends of its labels."""
    answers = [answer for row in body.get("predictions", []) for answer in row["heads"].values()]
    return body.get("version", ""), frozenset(answer["label"][-2:] for answer in answers)


def test_no_request_fails_or_mixes_versions(place: FolderPlace, versions: tuple[Path, Path]) -> None:
    """20 exchanges under load: every answer is whole and of one version, and memory does not grow."""
    for folder in reversed(versions):
        publish_folder(place, folder)
    with serving(Path("/nonexistent"), **followed(place.address)) as server:
        expected = {server.event("ready")["models"][EXAMPLE]: frozenset({"-1"})}
        with Callers(server, 2) as callers:
            for number in range(1, EXCHANGES + 1):
                roll_back(place)
                tell(server)
                line = wait_for(server, "release-served", number)
                expected[line["models"][EXAMPLE]] = frozenset({"-2"} if number % 2 else {"-1"})
                if number == 4:
                    few = server.metrics()
            many = server.metrics()
        assert len(expected) == 2
        assert {status for status, *_ in callers.answers} == {200}
        wrong = [answer for answer in callers.answers if expected[answer[1]] != answer[2]]
        assert wrong == []
        assert {version for _, version, _ in callers.answers} == expected.keys()
        # One release more would be 70 MB.
        assert many["process_resident_memory_bytes"] < few["process_resident_memory_bytes"] + 100e6
        assert many["process_open_fds"] <= few["process_open_fds"] + 10
        assert many['coldframe_model_updates_total{outcome="served"}'] == EXCHANGES
        infos = [name for name in many if name.startswith("coldframe_model_info")]
        assert len(infos) == 1 and line["models"][EXAMPLE] in infos[0]
        assert many["coldframe_passes_total"] > few["coldframe_passes_total"]
        assert server.end() == facts.DRAINED


def damage(folder: Path, fault: str) -> None:
    """Spoils a release in its place."""
    estimator = folder / EXAMPLE / "estimator.bin"
    match fault:
        case "half-copied":
            (folder / EXAMPLE / "heads" / "mlp.bin").unlink()
        case "altered":
            content = estimator.read_bytes()
            estimator.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        case "vanished":
            shutil.rmtree(folder)


def drifting(bundle: Path, folder: Path) -> Path:
    """Models whose digests are right, and whose golden answers are not."""
    made = relabelled(bundle, folder, "-3")
    answers = made / EXAMPLE / "answers.json"
    answers.write_bytes(answers.read_bytes().replace(b"0.9", b"0.1", 1))
    manifest = load_manifest(made, EXAMPLE)
    changed = replace(
        manifest, files=manifest.files | {"answers.json": describe_file(made / EXAMPLE, "answers.json")}
    )
    sealed = replace(changed, version=changed.digest())
    (made / EXAMPLE / "manifest.json").write_bytes(sealed.encode())
    return made


def test_what_cannot_be_served_keeps_the_old_models(
    place: FolderPlace, versions: tuple[Path, Path], tmp_path: Path
) -> None:
    """Broken releases, one after the other: the old models answer, readiness is true, the log says why."""
    first = publish_folder(place, versions[0]).release
    faults = ["half-copied", "altered", "vanished"]
    with serving(Path("/nonexistent"), **followed(place.address)) as server, server.client() as client:
        for number, fault in enumerate(faults, 1):
            second = publish_folder(place, versions[1]).release
            damage(tmp_path / "place" / "releases" / second, fault)
            tell(server)
            line = wait_for(server, "release-refused", number)
            assert line["release"] == second and "Publish" in line["detail"]
            assert client.get(facts.READY).json() == {"ready": True}
            place.replace(Pointer(first), place.mark().tag)
        publish_folder(place, drifting(versions[0], tmp_path / "drifting"))
        tell(server)
        assert wait_for(server, "release-refused", len(faults) + 1)["error"] == "BundleCorrupt"
        place.replace(Pointer("f" * 64), place.mark().tag)
        tell(server)
        assert wait_for(server, "release-refused", len(faults) + 2)["error"] == "BundleMissing"
        shutil.rmtree(tmp_path / "place")
        tell(server)
        wait_for(server, "releases-unread", 1)
        reply = client.post("/v1/predict", json={"text": "forty saves"})
        assert version_and_labels(reply.json())[1] == {"-1"}
        metrics = server.metrics()
        assert metrics['coldframe_model_updates_total{outcome="refused"}'] == len(faults) + 2
        assert metrics['coldframe_model_updates_total{outcome="unread"}'] == 1
        assert metrics["coldframe_ready"] == 1
        publish_folder(place, versions[1])  # the place is repaired, and the server goes on
        tell(server)
        wait_for(server, "release-served", 1)
        reply = client.post("/v1/predict", json={"text": "forty saves"})
        assert version_and_labels(reply.json())[1] == {"-2"}
        assert server.end() == facts.DRAINED


def test_a_start_with_a_broken_release(
    place: FolderPlace, versions: tuple[Path, Path], tmp_path: Path
) -> None:
    """A new server takes the release before; with none, it ends with an error."""
    publish_folder(place, versions[0])
    second = publish_folder(place, versions[1]).release
    damage(tmp_path / "place" / "releases" / second, "altered")
    with serving(Path("/nonexistent"), **followed(place.address)) as server, server.client() as client:
        assert server.event("release-refused")["release"] == second
        reply = client.post("/v1/predict", json={"text": "forty saves"})
        assert version_and_labels(reply.json())[1] == {"-1"}
    place.replace(Pointer(second), place.mark().tag)
    with starting(Path("/nonexistent"), **followed(place.address)) as server:
        assert server.wait() == facts.FAILED
        assert server.stderr().startswith("BundleCorrupt: ")


def test_a_place_without_a_release(tmp_path: Path) -> None:
    """The server ends, and says how to publish."""
    with starting(Path("/nonexistent"), **followed(str(tmp_path / "nothing"))) as server:
        assert server.wait() == facts.FAILED
        assert "coldframe models --publish" in server.stderr()


def test_a_look_once_in_a_while(place: FolderPlace, versions: tuple[Path, Path]) -> None:
    """Without any signal, the server finds a new release by itself."""
    publish_folder(place, versions[0])
    environ = followed(place.address) | {"COLDFRAME_RELEASES_CHECK_S": "1"}
    with serving(Path("/nonexistent"), **environ) as server:
        publish_folder(place, versions[1])
        wait_for(server, "release-served", 1)


@pytest.fixture
def bucket(moto: str, aws_environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Address of a place in S3, empty."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto)
    s3 = boto3.client("s3", endpoint_url=moto)
    s3.create_bucket(Bucket="releases-of-tests")
    yield "s3://releases-of-tests/models"
    for found in s3.list_objects_v2(Bucket="releases-of-tests").get("Contents", ()):
        s3.delete_object(Bucket="releases-of-tests", Key=found["Key"])
    s3.delete_bucket(Bucket="releases-of-tests")


def run(models: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`coldframe models` in a process."""
    command = [str(Path(sys.executable).parent / "coldframe"), "models", *arguments]
    environ = os.environ | {"COLDFRAME_MODEL_DIR": str(models)}
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)


def test_releases_in_s3(bucket: str, versions: tuple[Path, Path]) -> None:
    """The commands publish, list and roll back; the server follows, also while S3 fails."""
    assert run(versions[0], "--publish", bucket).returncode == 0
    with serving(Path("/nonexistent"), **followed(bucket)) as server, server.client() as client:
        done = run(versions[1], "--publish", bucket)
        assert "--roll-back s3://releases-of-tests/models" in done.stdout
        tell(server)
        wait_for(server, "release-served", 1)
        listed = json.loads(run(versions[0], "--releases", bucket, "--json").stdout)
        assert sorted(one["mark"] for one in listed) == ["current", "previous"]
        assert run(versions[0], "--roll-back", bucket).returncode == 0
        tell(server)
        wait_for(server, "release-served", 2)
        reply = client.post("/v1/predict", json={"text": "forty saves"})
        assert version_and_labels(reply.json())[1] == {"-1"}
        s3 = boto3.client("s3")
        key = next(
            found["Key"]
            for found in s3.list_objects_v2(Bucket="releases-of-tests")["Contents"]
            if found["Key"].endswith("mlp.bin") and server.event("ready")["release"] not in found["Key"]
        )
        s3.delete_object(Bucket="releases-of-tests", Key=key)
        assert run(versions[0], "--roll-back", bucket).returncode == 0
        tell(server)
        assert wait_for(server, "release-refused", 1)["error"] == "BundleMissing"
        assert client.get(facts.READY).status_code == 200
        assert server.end() == facts.DRAINED


def test_two_publishers_in_s3(bucket: str, versions: tuple[Path, Path]) -> None:
    """The pointer moves only from what a publisher has read."""
    place = open_place(bucket)
    none = place.mark()
    publish_folder(place, versions[0])
    for tag in (none.tag, '"another"'):
        with pytest.raises(PointerChanged):
            place.replace(Pointer("a" * 64), tag)
    assert run(versions[0], "--roll-back", bucket).stderr.startswith("Error: s3://")


def test_a_bucket_that_is_not_there(aws_environ: dict[str, str], moto: str, tmp_path: Path) -> None:
    """The error names the place and what AWS said, and nothing else."""
    environ = followed("s3://no-such-bucket") | {"AWS_ENDPOINT_URL_S3": moto}
    with starting(Path("/nonexistent"), **environ) as server:
        assert server.wait() == facts.FAILED
        message = server.stderr()
    assert "s3://no-such-bucket does not answer: NoSuchBucket. Check" in message
    assert "Traceback" not in message
