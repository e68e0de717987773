"""What the image for a GPU installs, by its lock file: CUDA's linked libraries, and no compiler."""

import re
from pathlib import Path

import pytest

import slim
from tests.conftest import ROOT

LOCKS = ROOT / "functions" / "server"
CUDA = {"nvidia-cublas", "nvidia-cuda-runtime", "nvidia-curand"}
DOCKERFILE = (LOCKS / "Dockerfile").read_text()


def locked(name: str) -> dict[str, set[str]]:
    """Versions by package."""
    found: dict[str, set[str]] = {}
    for package, version in re.findall(r"^([a-z0-9-]+)==(\S+)", (LOCKS / name).read_text(), re.MULTILINE):
        found.setdefault(package, set()).add(version)
    return found


def test_only_the_runtime_differs() -> None:
    """The server's own packages, in the same versions; onnxruntime-gpu takes onnxruntime's place."""
    server, gpu = locked("requirements.txt"), locked("gpu-requirements.txt")
    assert gpu.keys() - server.keys() == CUDA | {"numpy", "onnxruntime-gpu"}
    assert server.keys() - gpu.keys() == {"onnxruntime"}
    assert gpu["onnxruntime-gpu"] == server["onnxruntime"]
    assert all(gpu[name] == server[name] for name in gpu.keys() & server.keys())


def test_neither_torch_nor_a_compiler() -> None:
    """NVRTC compiles, cuDNN convolves, torch trains: none is installed."""
    names = locked("gpu-requirements.txt")
    assert not [name for name in names if "torch" in name or "nvrtc" in name or "cudnn" in name]
    assert all(len(locked("gpu-requirements.txt")[name]) == 1 for name in CUDA)


def test_every_package_has_a_digest() -> None:
    """pip installs what was locked, to the byte."""
    lines = (LOCKS / "gpu-requirements.txt").read_text().splitlines()
    requirements = [number for number, line in enumerate(lines) if re.match(r"[a-z]", line)]
    assert requirements
    assert all("--hash=sha256:" in lines[number + 1] for number in requirements)


def test_an_image_of_its_own() -> None:
    """The last stage, so that no other image is built through it; its device is the GPU unless told."""
    stages = re.findall(r"^FROM (\S+) AS (\S+)", DOCKERFILE, re.MULTILINE)
    assert stages[-1] == ("empty-server", "gpu")
    assert [name for _, name in stages].index("server") < [name for _, name in stages].index(
        "gpu-dependencies"
    )
    last = DOCKERFILE.rpartition("AS gpu\n")[2]
    assert "COLDFRAME_DEVICE=cuda" in last
    assert "requirements" not in last


def test_slimming(tmp_path: Path) -> None:
    """Headers, archives and TensorRT's side go; libraries that are linked against stay."""
    gone = [
        "nvidia/cu13/include/cuda.h",
        "nvidia/cu13/lib/libcudart_static.a",
        "nvidia/cu13/lib/libnvblas.so.13",
    ]
    gone.append("onnxruntime/capi/libonnxruntime_providers_tensorrt.so")
    gone.append("onnxruntime/capi/libonnxruntime.so.1.31.1")
    gone += [
        "cffi/x.h",
        "numpy/x/tests/x.py",
        "numpy/_core/_umath_tests.x.so",
        "numpy/_core/_simd.x.so",
        "numpy/x/x.pxd",
    ]
    gone += [f"numpy/{folder}/x" for folder in ("_core/include", "_core/lib", "f2py", "random/lib")]
    kept = ["nvidia/cu13/lib/libcublasLt.so.13", "nvidia/cu13/lib/libcurand.so.10"]
    kept.append("onnxruntime/capi/libonnxruntime_providers_cuda.so")
    for name in [*gone, *kept, *(f"{folder}/x" for folder in slim.KEPT)]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    slim.main(tmp_path, slim.REMOVED_ON_GPU)
    assert [name for name in gone if (tmp_path / name).exists()] == []
    assert all((tmp_path / name).exists() for name in kept)


@pytest.mark.parametrize("dockerfile", ["functions/Dockerfile", "functions/server/Dockerfile"])
def test_no_other_image_holds_the_encoder(dockerfile: str) -> None:
    """The encoder for GPUs is 45 MB that neither Lambda nor the server on CPUs reads."""
    assert re.search(r"encoders\b.*-gpu", (ROOT / dockerfile).read_text())
