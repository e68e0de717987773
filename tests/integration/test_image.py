"""The container image, built and run for real: what is in it, what it may do, what it weighs.

For this machine's architecture, and for arm64 on emulated cores.
"""

import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from coldframe_bench.benchmarks.cold.elsewhere import run_container
from coldframe_bench.benchmarks.cold.measure import ColdOptions
from coldframe_bench.benchmarks.image import (
    EVENTS,
    IMAGE_BUDGET_BYTES,
    OURS_BUDGET_BYTES,
    READ_BUDGET_BYTES,
    reads,
    sizes,
)
from coldframe_bench.records.raw_files import Cold, read_results
from coldframe_bench.targets.container import AS_ON_LAMBDA, Container, docker, running
from coldframe_bench.targets.faulty_server import FaultyServer
from tests.conftest import ROOT
from tests.functional.conftest import BUCKET, TABLE
from tests.integration.conftest import BuiltImage
from tests.integration.requests_of_all_routes import REQUESTS, TEXTS, Asked, ask_container
from tests.support.example import SPACE

pytestmark = [pytest.mark.containers, pytest.mark.docker]

EVENT = EVENTS["the encoder"]

STAND_IN = "lambda-python:"

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
print(json.dumps(writable))
"""

# What of our files is not as it should be: modes and owners; .pyc files that are missing, stale or checked.
INSPECT = """
import _imp, importlib.util, json, os, pathlib, stat
modes, stale = [], []
for root in ("/opt", "/var/task"):
    for path in [pathlib.Path(root), *pathlib.Path(root).rglob("*")]:
        found = path.lstat()
        expected = {0o755} if path.is_dir() else {0o644, 0o755}
        if stat.S_IMODE(found.st_mode) not in expected or found.st_uid != 0:
            modes.append(str(path))
        if path.suffix == ".py":
            source = path.read_bytes()
            compiled = pathlib.Path(importlib.util.cache_from_source(path))
            header = compiled.read_bytes()[:16] if compiled.exists() else b""
            hashed = _imp.source_hash(importlib.util._RAW_MAGIC_NUMBER, source)
            if header[4:8] != b"\\x01\\x00\\x00\\x00" or header[8:] != hashed:
                stale.append(str(path))
print(json.dumps({"modes": modes, "stale": stale}))
"""

LIST = """
import json, pathlib
print(json.dumps([str(path) for root in ("/opt", "/var/task") for path in pathlib.Path(root).rglob("*")]))
"""


@pytest.mark.parametrize("asked", REQUESTS, ids=str)
def test_every_route_answers(any_container: Container, asked: Asked) -> None:
    """Read-only, without capabilities, as Lambda's user: nothing is missing that an answer needs."""
    assert ask_container(any_container, asked).status == asked.status


def test_first_answer_is_cold(any_image: BuiltImage) -> None:
    """The answer that waited for the init phase says so, the next one does not."""
    with running(any_image.image, any_image.launch) as container:
        starts = [json.loads(container.invoke(EVENT)["body"])["start"] for _ in range(2)]
    assert starts == ["cold", "warm"]


def test_cold_starts_of_containers(image: str, bundle: Path, tmp_path: Path) -> None:
    """`coldframe bench cold --image`: a container for each sample, of which none is left."""
    before = docker("ps", "--all", "--quiet")
    results = read_results(run_container(ColdOptions(bundle, 1, 0, tmp_path / "cold.jsonl"), image))
    series = {sample.series: sample.by for sample in results.of(Cold)}
    assert series == {"estimator, in a container": "estimator", "encoder, in a container": "ensemble"}
    assert docker("ps", "--all", "--quiet") == before


def test_only_tmp_can_be_written(any_container: Container) -> None:
    """Of all folders only /tmp takes a file; /dev is Docker's, Lambda's has no room for files."""
    writable = json.loads(any_container.run_python(WRITE_EVERYWHERE))
    assert {folder.split("/")[1] for folder in writable} - {"dev"} == {"tmp"}


def test_nothing_of_ours_can_be_written_where_the_root_is_not_read_only(any_image: BuiltImage) -> None:
    """Even on a writable root, the function's user cannot change what will be run."""
    options = [option for option in AS_ON_LAMBDA if option != "--read-only"]
    program = any_image.launch.run(any_image.image, [*any_image.launch.python, "-c", WRITE_EVERYWHERE])
    writable = json.loads(docker("run", "--rm", *options, *program))
    assert [folder for folder in writable if folder.startswith(("/opt", "/var/task", "/var/runtime"))] == []


def test_files_are_for_everybody_and_compiled(any_container: Container) -> None:
    """Everybody may read our files, nobody but root writes them; every module has its unchecked .pyc."""
    assert json.loads(any_container.run_python(INSPECT)) == {"modes": [], "stale": []}


def test_nothing_else_is_in_the_image(any_container: Container) -> None:
    """Functions as in the repository; no pip, no tests, no headers, no leftovers of the build."""
    paths = [Path(path) for path in json.loads(any_container.run_python(LIST))]
    files = {str(path.relative_to("/var/task")) for path in paths if path.is_relative_to("/var/task")}
    written = {str(path.relative_to(ROOT / "functions")) for path in (ROOT / "functions").rglob("*/**/*.py")}
    assert {name for name in files if name.endswith(".py")} == written
    assert {name.partition("/")[0] for name in files} == {"coldframe_functions"}
    names = {path.name for path in paths}
    assert names.isdisjoint({"pip", "tests", "torch", "transformers", "sklearn", "sympy", ".git", ".env"})
    assert {path.suffix for path in paths}.isdisjoint({".pyi", ".pxd", ".h", ".a", ".pkl"})


def test_weight_is_within_budget(any_image: BuiltImage) -> None:
    """At most 100 MB on top of the base, 260 MB with the stand-in; AWS's weighs what it weighs."""
    found = sizes(any_image.image)
    assert found.ours_bytes <= OURS_BUDGET_BYTES
    if found.base.startswith(STAND_IN):
        assert found.image_bytes <= IMAGE_BUDGET_BYTES


def test_cold_start_reads_within_budget(image: str) -> None:
    """Init phase and first answer, the encoder's included, need at most 80 MB of all files."""
    with running(image) as container:
        container.invoke(EVENT)
        found = reads(container)
    assert found.folders["/opt/model/encoders"] > 0
    assert found.total_bytes <= READ_BUDGET_BYTES


def test_image_is_for_nobody(any_image: BuiltImage) -> None:
    """Without being told, the image runs as Lambda's user; and it says that it survives a snapshot."""
    [facts] = json.loads(docker("image", "inspect", any_image.image))
    assert facts["Config"]["User"] == "993:990"
    assert facts["Config"]["Labels"]["com.amazonaws.lambda.feature.snapstart"] == "Allow"


def test_no_text_is_logged(any_container: Container) -> None:
    """The log has a line per request, and no word of any text."""
    ask_container(any_container, Asked("POST", "/v1/predict", {"text": "a quokka on a skateboard"}))
    log = any_container.log()
    assert '"event":"request"' in log
    for word in ("quokka", *[text.split()[1] for text in TEXTS if text]):
        assert word not in log


def test_shared_cache_works_with_what_is_left_of_boto3(
    any_image: BuiltImage, aws_environ: dict[str, str], store: FaultyServer
) -> None:
    """What one container computed, the next one finds in the table; S3 and STS have their clients, too."""
    settings = {
        "COLDFRAME_CACHE_TABLE": TABLE,
        "COLDFRAME_CACHE_BUCKET": BUCKET,
        "COLDFRAME_CACHE_POLICY": "always",
        "COLDFRAME_CACHE_DEADLINE_MS": "60000",
        "COLDFRAME_LOG_LEVEL": "off",
        "PYTHONPATH": "/opt/python:/var/task",
    }
    variables = [f"--env={name}={value}" for name, value in (aws_environ | settings).items()]
    code = f"""
import json
from types import SimpleNamespace
from coldframe_functions.predict.app import handler
context = SimpleNamespace(aws_request_id="1", get_remaining_time_in_millis=lambda: 60_000)
print(handler(json.loads({json.dumps(EVENT)!r}), context)["body"])
import boto3
boto3.client("s3").put_object(Bucket="{BUCKET}", Key="values/probe", Body=b"")
boto3.client("sts")
"""
    program = any_image.launch.run(any_image.image, [*any_image.launch.python, "-c", code])
    command = ["run", "--rm", *AS_ON_LAMBDA, "--network=host", *variables, *program]
    caches = [json.loads(docker(*command))["usage"]["cache"] for _ in range(2)]
    assert [(cache["l2"], cache["miss"]) for cache in caches] == [(0, 1), (1, 0)]


def test_every_file_is_for_the_one_architecture(any_image: BuiltImage) -> None:
    """Each program and library, the base's too, is for the architecture that the image says it is for."""
    [facts] = json.loads(docker("image", "inspect", any_image.image))
    found = machines(any_image.image)
    others = {path: machine for path, machine in found.items() if machine != facts["Architecture"]}
    assert (others, set(found.values())) == ({}, {facts["Architecture"]})


@pytest.mark.parametrize("by", EVENTS)
def test_arm64_answers_alike(container: Container, arm64: BuiltImage, by: str) -> None:
    """A recorded event gets the label on arm64 that it gets here, as the first answer of its environment."""
    with running(arm64.image, arm64.launch) as started:
        label_there = label_of(started.invoke(EVENTS[by]))
    assert label_there == label_of(container.invoke(EVENTS[by])) == SPACE


def test_versions_share_their_large_layers(image: str, tmp_path: Path) -> None:
    """A change of the function's code leaves dependencies, models and package as they are."""
    for folder in ("functions", "layers/shared", "models"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / ".dockerignore", tmp_path)
    with (tmp_path / "functions/coldframe_functions/predict/app.py").open("a") as app:
        app.write("\nVERSION = 2\n")
    base = f"LAMBDA_BASE={sizes(image).base}"
    dockerfile = str(tmp_path / "functions/Dockerfile")
    changed = docker("build", "--quiet", f"--file={dockerfile}", f"--build-arg={base}", str(tmp_path)).strip()
    try:
        one, other = layers(image), layers(changed)
    finally:
        docker("image", "rm", changed)
    assert len(one) == len(other)
    assert one[:-1] == other[:-1]
    assert one[-1] != other[-1]


def layers(image: str) -> list[Any]:
    """Digests of the layers of an image, lowest first."""
    [facts] = json.loads(docker("image", "inspect", image))
    found: list[Any] = facts["RootFS"]["Layers"]
    return found


MACHINES = {62: "amd64", 183: "arm64"}
"""Docker's names of `e_machine` in the header of an ELF file."""


def machines(image: str) -> dict[str, str | None]:
    """Architecture of each ELF file in an image, the base's files included, by path."""
    found = {}
    container = docker("create", image).strip()
    try:
        with (
            subprocess.Popen(["docker", "export", container], stdout=subprocess.PIPE) as export,
            tarfile.open(fileobj=export.stdout, mode="r|") as archive,
        ):
            for member in archive:
                content = archive.extractfile(member) if member.isreg() else None
                if content and (header := content.read(20)).startswith(b"\x7fELF"):
                    found[member.name] = MACHINES.get(int.from_bytes(header[18:], "little"))
    finally:
        docker("rm", container)
    return found


def label_of(result: Any) -> str:
    """The label of the one text of a recorded event, by the one head that it asks for."""
    [prediction] = json.loads(result["body"])["predictions"]
    [head] = prediction["heads"].values()
    label: str = head["label"]
    return label
