"""`coldframe verify`: is this bundle what was built, and does it compute what it should here?"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coldframe.errors import BundleCorrupt
from coldframe.model.bundle import Manifest, check_files, load_golden, load_manifest
from coldframe.model.encoder import Encoder, check_golden
from coldframe.model.estimator import Estimator
from coldframe.model.files import ESTIMATOR, REBUILD, VOCABULARY, head_folder, read_file
from coldframe.model.heads import load_head
from coldframe.model.tokenizer import TextWindows


@dataclass(frozen=True)
class VerifyReport:
    """What was checked, all of it good."""

    version: str
    files: int
    golden: int
    lowest_cosine: float


def verify_bundle(folder: Path) -> VerifyReport:
    """Checks digests, shapes and golden vectors. Raises a BundleError naming what is wrong."""
    manifest = load_manifest(folder)
    check_files(folder, manifest)
    for name in manifest.heads:
        check_head(folder, name, manifest)
    check_estimator(folder, manifest)
    golden = load_golden(folder)
    windows = TextWindows(folder, manifest.encoder)
    windows.load()
    lowest = check_golden(Encoder(folder, manifest.encoder, threads=1), windows, golden)
    return VerifyReport(manifest.version, len(manifest.files), len(golden.vectors), lowest)


def check_head(folder: Path, name: str, manifest: Manifest) -> None:
    """Raises BundleCorrupt unless the head turns an embedding into one probability per label."""
    head, dimension, labels = load_head(folder, name), manifest.encoder.dimension, len(manifest.labels)
    try:
        answer = head.predict(np.full((1, dimension), dimension**-0.5, dtype=np.float32))
    except (ValueError, IndexError) as exc:
        raise BundleCorrupt(
            f"{head_folder(name)} cannot answer for an embedding of {dimension} dimensions: {exc}. {REBUILD}"
        ) from exc
    if answer.shape != (1, labels):
        found = f"{head_folder(name)} answers {answer.shape[1]} classes"
        raise BundleCorrupt(f"{found}; the manifest has {labels} labels. {REBUILD}")


def check_estimator(folder: Path, manifest: Manifest) -> None:
    """Raises BundleCorrupt unless the estimator knows every label, every token and its partner head."""
    facts, labels = manifest.estimator, len(manifest.labels)
    Estimator(folder, facts)
    tokens = read_file(folder, VOCABULARY).count(b"\n")
    if len(facts.scales) != len(facts.bias):
        found = f"{ESTIMATOR} has {len(facts.scales)} scales and {len(facts.bias)} biases"
        raise BundleCorrupt(f"{found}: one of each per label is expected. {REBUILD}")
    if len(facts.bias) != labels:
        found = f"{ESTIMATOR} answers {len(facts.bias)} classes"
        raise BundleCorrupt(f"{found}; the manifest has {labels} labels. {REBUILD}")
    if facts.vocabulary != tokens:
        found = f"{ESTIMATOR} has weights of {facts.vocabulary} tokens"
        raise BundleCorrupt(f"{found}; {VOCABULARY} has {tokens}. {REBUILD}")
    if facts.partner not in manifest.heads:
        known = ", ".join(sorted(manifest.heads))
        raise BundleCorrupt(
            f"The estimator's partner {facts.partner!r} is no head. Heads: {known}. {REBUILD}"
        )
