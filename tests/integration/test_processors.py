"""The same encoder on another processor: AVX2 without VNNI, emulated by qemu (Debian: `qemu-user`)."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

QEMU = shutil.which("qemu-x86_64")
HASWELL = [str(QEMU), "-cpu", "Haswell"]

pytestmark = [
    pytest.mark.containers,
    pytest.mark.qemu,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="compares two x86-64 processors"),
    pytest.mark.skipif(QEMU is None, reason="no qemu-x86_64: on Debian or Ubuntu, apt install qemu-user"),
]

EMBED = """
import hashlib, sys
from pathlib import Path
from coldframe.model.bundle import load_encoder_manifest, load_golden
from coldframe.model.encoder import Encoder, check_golden
from coldframe.model.tokenizer import TextWindows

folder = Path(sys.argv[1])
facts, golden = load_encoder_manifest(folder.parent.parent, folder.name).facts, load_golden(folder)
encoder, windows = Encoder(folder, facts, threads=1), TextWindows(folder, facts)
digest = hashlib.sha256()
for vector in golden.vectors:
    digest.update(encoder.encode(windows.cut([vector.text])[0][:1])[0])
check_golden(encoder, windows, golden)
print(digest.hexdigest())
"""


def embeddings_digest(encoder_dir: Path, prefix: list[str]) -> str:
    """Digest of the embeddings of all golden texts, from a process of its own."""
    command = [*prefix, sys.executable, "-c", EMBED, str(encoder_dir)]
    environ = {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_same_bits_without_vnni(encoder_dir: Path) -> None:
    """The embeddings of all golden texts are the same, to the bit, here and on a processor without VNNI."""
    assert embeddings_digest(encoder_dir, HASWELL) == embeddings_digest(encoder_dir, [])
