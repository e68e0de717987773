"""`coldframe verify`: are encoders and models what was built, and do they compute what they should here?"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coldframe.errors import BundleCorrupt, BundleMissing
from coldframe.model.bundle import (
    EncoderFacts,
    Manifest,
    check_files,
    load_encoder_manifest,
    load_golden,
    load_pair,
)
from coldframe.model.encoder import Encoder, check_golden
from coldframe.model.estimator import Estimator
from coldframe.model.files import (
    ESTIMATOR,
    REBUILD,
    VOCABULARY,
    built_models,
    encoder_folder,
    head_folder,
    model_folder,
    read_file,
)
from coldframe.model.heads import load_head
from coldframe.model.tokenizer import TextWindows


@dataclass(frozen=True)
class EncoderReport:
    """What was checked of an encoder, all of it good."""

    name: str
    version: str
    files: int
    golden: int
    lowest_cosine: float


@dataclass(frozen=True)
class ModelReport:
    """What was checked of a model, all of it good."""

    name: str
    version: str
    encoder: str
    files: int


def verify_bundle(model_dir: Path) -> tuple[list[EncoderReport], list[ModelReport]]:
    """Checks every model in a folder, and each of their encoders once.

    Raises a BundleError naming what is wrong.
    """
    names = built_models(model_dir)
    if not names:
        raise BundleMissing(f"{model_dir} has no model. {REBUILD}")
    used = dict.fromkeys(load_pair(model_dir, name)[1].name for name in names)
    encoders = [verify_encoder(model_dir, name) for name in used]  # first: models are compared with them
    return encoders, [verify_model(model_dir, name) for name in names]


def verify_encoder(model_dir: Path, name: str) -> EncoderReport:
    """Checks digests and golden vectors. Raises a BundleError naming what is wrong."""
    folder, manifest = encoder_folder(model_dir, name), load_encoder_manifest(model_dir, name)
    check_files(folder, manifest)
    golden = load_golden(folder)
    windows = TextWindows(folder, manifest.facts)
    windows.load()
    lowest = check_golden(Encoder(folder, manifest.facts, threads=1), windows, golden)
    return EncoderReport(name, manifest.version, len(manifest.files), len(golden.vectors), lowest)


def verify_model(model_dir: Path, name: str) -> ModelReport:
    """Checks digests, and the shapes of heads and estimator. Raises a BundleError naming what is wrong."""
    folder = model_folder(model_dir, name)
    manifest, encoder = load_pair(model_dir, name)
    check_files(folder, manifest)
    for head in manifest.heads:
        check_head(folder, head, manifest, encoder.facts)
    check_estimator(folder, manifest, encoder_folder(model_dir, encoder.name))
    return ModelReport(name, manifest.version, encoder.name, len(manifest.files))


def check_head(folder: Path, name: str, manifest: Manifest, facts: EncoderFacts) -> None:
    """Raises BundleCorrupt unless the head turns an embedding into one probability per label."""
    head, dimension, labels = load_head(folder, name), facts.dimension, len(manifest.labels)
    try:
        answer = head.predict(np.full((1, dimension), dimension**-0.5, dtype=np.float32))
    except (ValueError, IndexError) as exc:
        raise BundleCorrupt(
            f"{head_folder(name)} cannot answer for an embedding of {dimension} dimensions: {exc}. {REBUILD}"
        ) from exc
    if answer.shape != (1, labels):
        found = f"{head_folder(name)} answers {answer.shape[1]} classes"
        raise BundleCorrupt(f"{found}; the manifest has {labels} labels. {REBUILD}")


def check_estimator(folder: Path, manifest: Manifest, encoder: Path) -> None:
    """Raises BundleCorrupt unless the estimator knows every label, every token and its partner head."""
    facts, labels = manifest.estimator, len(manifest.labels)
    Estimator(folder, facts)
    tokens = read_file(encoder, VOCABULARY).count(b"\n")
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
