"""An arm64 image on an x86-64 machine: qemu (Debian: `qemu-user-static`) is put into its container.

Nothing is registered with the kernel: this machine's runtime interface emulator starts qemu, and qemu the
image's Python.
"""

import shutil
from pathlib import Path

import pytest

from coldframe_bench.targets.container import Launch
from tests.conftest import ROOT

QEMU = shutil.which("qemu-aarch64-static")
RUNTIME_INTERFACE_EMULATOR = "samcli/local/rapid/aws-lambda-rie-x86_64"

# onnxruntime asks the kernel's files which processor this is, and crashes on those of another architecture.
GRAVITON2 = ROOT / "tests" / "arm64" / "graviton2"

_PYTHON = ("/emulator/qemu", "-cpu", "neoverse-n1", "/var/lang/bin/python3.13")


def emulated() -> Launch:
    """How the programs of an arm64 image start here; skips the test where they cannot."""
    if QEMU is None:
        pytest.skip("no qemu-aarch64-static: on Debian or Ubuntu, apt install qemu-user-static")
    [rie] = (ROOT / ".venv-sam").glob(f"lib/python3.*/site-packages/{RUNTIME_INTERFACE_EMULATOR}")
    mounts = {Path(QEMU).resolve(): "/emulator/qemu", rie.resolve(): "/emulator/rie"}
    mounts |= {path: f"/{path.relative_to(GRAVITON2)}" for path in GRAVITON2.rglob("*") if path.is_file()}
    return Launch(
        options=(
            "--platform=linux/arm64",
            *(f"--volume={here}:{there}:ro" for here, there in mounts.items()),
        ),
        server=(
            "/emulator/rie",
            *_PYTHON,
            "/var/runtime/bootstrap.py",
            "coldframe_functions.predict.app.handler",
        ),
        python=_PYTHON,
    )
