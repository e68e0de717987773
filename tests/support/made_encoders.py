"""Encoders that the build environment made, and what transformers says of texts."""

import contextlib
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from coldframe.model.bundle import EncoderFacts
from coldframe.model.encoder import Encoder
from coldframe.model.tokenizer import TextWindows, normalise
from coldframe_local.paths import BUILD_PYTHON, ROOT, build_environ
from coldframe_training.embeddings.matrices import to_matrix


def in_build_environment(module: str, *arguments: str | Path) -> None:
    """Runs a module where torch is, with one thread: several would wait for each other."""
    done = subprocess.run(
        [BUILD_PYTHON, "-m", module, *arguments],
        cwd=ROOT,
        env=build_environ() | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr


def reuse(name: str, make: Callable[[Path], object], target: Path, *inputs: str | Path) -> Path:
    """Fills the folder `target` by `make`, or from an earlier run with the same code and the same inputs.

    name: what is made. inputs: values, and files or folders that `make` reads. `.cache/tests` keeps a folder
    for each digest.
    """
    kept = ROOT / ".cache" / "tests" / _digest(name, *inputs)
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as outside, tempfile.TemporaryDirectory(dir=kept.parent) as beside:
            making = Path(outside) / "made"  # outside the repository, where training refuses to write
            making.mkdir()
            make(making)
            copy = shutil.copytree(making, Path(beside) / "made")
            with contextlib.suppress(OSError):  # another process was quicker
                copy.rename(kept)
    return shutil.copytree(kept, target, dirs_exist_ok=True)


def _digest(*inputs: str | Path) -> str:
    """Digest of inputs, of all code that builds and trains, and of the versions that it runs with."""
    code = [path for part in ("layers", "tests/support") for path in sorted((ROOT / part).rglob("*.py"))]
    digest = hashlib.sha256()
    for part in (*inputs, *code, ROOT / "layers" / "model" / "requirements.txt", sys.version):
        for path in _files(part) if isinstance(part, Path) else ():
            digest.update(b"\0%s\0" % path.name.encode())
            digest.update(path.read_bytes())
        if isinstance(part, str):
            digest.update(b"\0%s\0" % part.encode())
    return digest.hexdigest()[:32]


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())


class Made:
    """One kind: what is served, and what transformers says."""

    def __init__(self, root: Path, kind: str) -> None:
        self.folder = root / f"{kind}-served"
        said = json.loads((root / f"{kind}.json").read_bytes())
        self.graph: str = said["graph"]
        self.facts = msgspec.convert(said["facts"], EncoderFacts)
        self.texts: list[dict[str, Any]] = said["texts"]
        self.windows = TextWindows(self.folder, self.facts)
        self.encoder = Encoder(self.folder, self.facts, threads=1)

    def said(self, name: str) -> NDArray[np.float32]:
        """float32 (n, d)"""
        return np.array([text[name] for text in self.texts], dtype=np.float32)

    def found(self) -> NDArray[np.float32]:
        """The served embeddings of first windows, (n, d)."""
        firsts = [self.windows.cut([normalise(text["text"])])[0][0] for text in self.texts]
        return to_matrix([self.encoder.encode([row])[0] for row in firsts])
