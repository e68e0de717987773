"""Encoders that the build environment made, and what transformers says of texts."""

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from coldframe.model.bundle import EncoderFacts
from coldframe.model.encoder import Encoder
from coldframe.model.tokenizer import TextWindows
from coldframe.text import normalise
from layers.model.embeddings.matrices import to_matrix
from local.paths import BUILD_PYTHON, ROOT, build_environ


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
