"""The image for a GPU, as `make image-gpu` builds it: what is in it, and what it says where there is no GPU.

Its build downloads 0.8 GB, so it is not built here; its lock file is tested everywhere.
"""

import json
import subprocess
import time

import pytest

from coldframe_bench.benchmarks.image import Weights, weigh, weights_table
from coldframe_bench.targets.container import docker
from tests.support.example import SPACE

pytestmark = [pytest.mark.containers, pytest.mark.docker]

IMAGE = "coldframe:gpu"
BUDGET_BYTES = 1_500_000_000  # of cuBLAS alone 610 MB, of onnxruntime 320 MB
AS_A_HOME_DOES = (
    "--read-only",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--env=COLDFRAME_ALLOW_ANYONE=true",
)


@pytest.fixture(scope="module")
def image(containers: None) -> str:
    """The image that is there; without it, tests are skipped."""
    if subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True).returncode:
        pytest.skip(f"no image {IMAGE}: `make image-gpu` builds it")
    return IMAGE


@pytest.fixture(scope="module")
def weights(image: str) -> Weights:
    return weigh(image)


def test_what_is_in_it(weights: Weights) -> None:
    """CUDA's libraries that are linked against, both graphs, the encoder for CPUs: `auto` needs that one."""
    names = {path.rpartition("/")[2] for path in weights.files}
    assert {"libcublasLt.so.13", "libcublas.so.13", "libcudart.so.13", "libcurand.so.10"} <= names
    assert {"packed.onnx", "padded.onnx", "weights.bin", "encoder.ort"} <= names
    assert "libonnxruntime_providers_cuda.so" in names


def test_what_is_not(image: str, weights: Weights) -> None:
    """No torch, no compiler of any kind, no headers, no cuDNN, no TensorRT."""
    names = {path.rpartition("/")[2] for path in weights.files}
    unwanted = ("libnvrtc", "libcudnn", "libtorch", "libonnxruntime_providers_tensorrt", "libnvblas")
    assert not [name for name in names if name.startswith(unwanted) or name.endswith((".h", ".a"))]
    found = "import shutil; print([tool for tool in ('gcc', 'cc', 'nvcc', 'ptxas') if shutil.which(tool)])"
    assert docker("run", "--rm", "--entrypoint=python3", image, "-c", found).strip() == "[]"


def test_size(weights: Weights) -> None:
    """Within budget; the report names the largest parts."""
    assert weights.ours_bytes < BUDGET_BYTES
    assert "libcublasLt.so.13" in weights_table(weights)


def test_without_a_gpu(image: str) -> None:
    """`docker run` without `--gpus` ends at once, and says what to do."""
    done = subprocess.run(
        ["docker", "run", "--rm", *AS_A_HOME_DOES, image], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "--gpus all" in done.stdout + done.stderr


def test_auto_without_a_gpu(image: str) -> None:
    """With `auto` the CPU serves: ready, and an answer, with a read-only file system and no rights."""
    name = docker(
        "run",
        "--detach",
        "--rm",
        *AS_A_HOME_DOES,
        "--publish=127.0.0.1::8080",
        "--env=COLDFRAME_DEVICE=auto",
        image,
    ).strip()
    try:
        ask = "import json, urllib.request as r; q = r.Request('http://127.0.0.1:8080/v1/predict',"
        ask += f" json.dumps({{'text': {SPACE!r}}}).encode(), {{'content-type': 'application/json'}});"
        ask += " print(r.urlopen(q).read().decode())"
        ends = time.monotonic() + 120
        ready = ["docker", "exec", name, "python3", "-m", "coldframe.server.health"]
        while subprocess.run(ready, capture_output=True).returncode and time.monotonic() < ends:
            pass  # each question takes a process of its own: the loop is no busy one
        answer = json.loads(docker("exec", name, "python3", "-c", ask))
        assert answer["predictions"][0]["heads"]
        assert "gpu-not-used" in docker("logs", name)
    finally:
        docker("kill", name)
