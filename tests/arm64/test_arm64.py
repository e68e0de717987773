"""The same bundle on arm64 as on x86-64, emulated by qemu.

Not in the default run: `tests/arm64/root.sh`, then `.venv/bin/python -m pytest -m arm64` (three minutes).
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from coldframe.model.bundle import load_golden
from tests.arm64.answers import Answers
from tests.conftest import ROOT

ARM64 = Path(os.environ.get("ARM64_ROOT", ROOT / ".cache" / "arm64"))
QEMU = shutil.which("qemu-aarch64")
GRAVITON2 = [str(QEMU), "-cpu", "neoverse-n1", "-L", str(ARM64), str(ARM64 / "usr/bin/python3.11"), "-S"]
PACKAGES = [str(ARM64 / "site"), str(ROOT), str(ROOT / "layers/shared/python")]

pytestmark = [
    pytest.mark.arm64,
    pytest.mark.skipif(QEMU is None, reason="no qemu-aarch64: on Debian or Ubuntu, apt install qemu-user"),
    pytest.mark.skipif(not (ARM64 / "site").exists(), reason=f"no {ARM64}: run tests/arm64/root.sh"),
]


def answers(bundle: Path, command: list[str], **environ: str) -> Answers:
    """The answers of a process of its own."""
    done = subprocess.run(
        [*command, "-m", "tests.arm64.answers", str(bundle)],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "OPENBLAS_NUM_THREADS": "1", **environ},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout, type=Answers)


@pytest.fixture(scope="module")
def here(bundle: Path) -> Answers:
    """This processor's."""
    return answers(bundle, [sys.executable])


@pytest.fixture(scope="module")
def there(bundle: Path) -> Answers:
    """Those of an emulated Graviton2."""
    return answers(bundle, GRAVITON2, PYTHONPATH=os.pathsep.join(PACKAGES))


def labels(probabilities: list[list[float]]) -> NDArray[np.int64]:
    """The best label of each text."""
    best: NDArray[np.int64] = np.array([row[:20] for row in probabilities]).argmax(axis=1)
    return best


def test_golden_vectors(encoder_dir: Path, there: Answers) -> None:
    """The encoder is as close to the original weights there as it promises everywhere."""
    assert there.lowest_cosine >= load_golden(encoder_dir).min_cosine


def test_rows_are_on_their_own(there: Answers) -> None:
    """A row's embedding is the same, to the bit, alone and among others."""
    assert there.alone


def test_embeddings_are_close(here: Answers, there: Answers) -> None:
    """Embeddings are not the same to the bit, but nearly: cosine of at least 0.99, 0.999 on average."""
    cosines = (np.array(here.embeddings) * np.array(there.embeddings)).sum(axis=1)
    assert cosines.min() >= 0.99
    assert cosines.mean() >= 0.999


def test_labels_are_the_same(here: Answers, there: Answers) -> None:
    """`auto` gives every golden text the same label; no head differs on more than one of them."""
    for head, probabilities in here.probabilities.items():
        different = int((labels(probabilities) != labels(there.probabilities[head])).sum())
        assert different <= (0 if head == "auto" else 1), head
