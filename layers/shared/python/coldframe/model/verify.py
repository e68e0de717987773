"""`coldframe verify`: compares encoders and models with their build, and checks what they compute here."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from coldframe.errors import BundleCorrupt, BundleMissing
from coldframe.graphs.graph import GraphError
from coldframe.model.bundle import (
    EncoderFacts,
    EncoderManifest,
    Golden,
    Manifest,
    check_files,
    check_members,
    load_encoder_manifest,
    load_golden,
    load_pair,
)
from coldframe.model.encoder import Encoder, check_golden
from coldframe.model.estimator import Estimator
from coldframe.model.files import (
    CENTROIDS,
    ESTIMATOR,
    REBUILD,
    VOCABULARY,
    built_models,
    encoder_folder,
    head_file,
    model_folder,
    no_models,
    read_file,
)
from coldframe.model.golden_answers import check_answers, load_answers, probabilities_of_golden
from coldframe.model.heads import load_centroids, load_head
from coldframe.model.tokenizer import TextWindows
from coldframe.vectors import to_floats, to_vector


@dataclass(frozen=True)
class EncoderReport:
    """Checks of an encoder that passed."""

    name: str
    version: str
    files: int
    golden: int
    lowest_cosine: float


@dataclass(frozen=True)
class ModelReport:
    """Checks of a model that passed."""

    name: str
    version: str
    encoder: str
    files: int


class LoadedEncoder(NamedTuple):
    """An encoder, its tokenizer and its golden vectors."""

    manifest: EncoderManifest
    encoder: Encoder
    tokenizer: TextWindows
    golden: Golden


def verify_bundle(model_dir: Path) -> tuple[list[EncoderReport], list[ModelReport]]:
    """Checks every model in a folder, and each of their encoders once.

    Raises a BundleError for the first fault.
    """
    names = built_models(model_dir)
    if not names:
        raise BundleMissing(no_models(model_dir))
    models = [load_pair(model_dir, name) for name in names]
    encoders = dict.fromkeys(encoder.name for _, encoder in models)
    loaded = {name: load_whole_encoder(model_dir, name) for name in encoders}
    reports = [verify_encoder(encoder) for encoder in loaded.values()]  # first: models are compared with them
    return reports, [verify_model(model_dir, model, loaded[encoder.name]) for model, encoder in models]


def load_whole_encoder(model_dir: Path, name: str) -> LoadedEncoder:
    """The encoder `name`, with its files as built and its golden vectors. Raises a BundleError."""
    folder, manifest = encoder_folder(model_dir, name), load_encoder_manifest(model_dir, name)
    check_files(folder, manifest)
    tokenizer = TextWindows(folder, manifest.facts)
    tokenizer.load()
    return LoadedEncoder(manifest, Encoder(folder, manifest.facts, threads=1), tokenizer, load_golden(folder))


def verify_encoder(loaded: LoadedEncoder) -> EncoderReport:
    """Checks golden vectors. Raises EncoderDrift."""
    manifest = loaded.manifest
    lowest = check_golden(loaded.encoder, loaded.tokenizer, loaded.golden)
    golden = len(loaded.golden.vectors)
    return EncoderReport(manifest.name, manifest.version, len(manifest.files), golden, lowest)


def verify_model(model_dir: Path, manifest: Manifest, encoder: LoadedEncoder) -> ModelReport:
    """Checks digests, shapes of heads and estimator, and golden answers.

    Raises a BundleError for the first fault.
    """
    folder = model_folder(model_dir, manifest.name)
    check_files(folder, manifest)
    for head in manifest.heads:
        check_head(folder, head, manifest, encoder.manifest.facts)
    check_members(manifest)
    check_centroids(folder, manifest, encoder.manifest.facts)
    check_estimator(folder, manifest, encoder_folder(model_dir, encoder.manifest.name))
    answers = probabilities_of_golden(folder, manifest, encoder.encoder, encoder.tokenizer, encoder.golden)
    check_answers(answers, load_answers(folder))
    return ModelReport(manifest.name, manifest.version, encoder.manifest.name, len(manifest.files))


def check_head(folder: Path, name: str, manifest: Manifest, facts: EncoderFacts) -> None:
    """Raises BundleCorrupt unless the head turns an embedding into one probability per label."""
    head, dimension, labels = load_head(folder, name), facts.dimension, len(manifest.labels)
    try:
        (answer,) = head.predict([to_vector([dimension**-0.5] * dimension)])
    except GraphError as exc:
        raise BundleCorrupt(
            f"{head_file(name)} cannot answer for an embedding of {dimension} dimensions: {exc}. {REBUILD}"
        ) from exc
    if (classes := len(to_floats(answer))) != labels:
        fault = f"{head_file(name)} answers {classes} classes"
        raise BundleCorrupt(f"{fault}; the manifest has {labels} labels. {REBUILD}")


def check_centroids(folder: Path, manifest: Manifest, facts: EncoderFacts) -> None:
    """Raises BundleCorrupt unless there is a centroid of each label."""
    actual, expected = load_centroids(folder).shape, (len(manifest.labels), facts.dimension)
    if actual != expected:
        raise BundleCorrupt(f"{CENTROIDS} has the shape {actual}; expected {expected}. {REBUILD}")


def check_estimator(folder: Path, manifest: Manifest, encoder: Path) -> None:
    """Raises BundleCorrupt unless the estimator fits the labels, the tokens and its partner head."""
    facts, labels = manifest.estimator, len(manifest.labels)
    Estimator(folder, facts)
    tokens = read_file(encoder, VOCABULARY).count(b"\n")
    if len(facts.scales) != len(facts.bias):
        fault = f"{ESTIMATOR} has {len(facts.scales)} scales and {len(facts.bias)} biases"
        raise BundleCorrupt(f"{fault}: one of each per label is expected. {REBUILD}")
    if len(facts.bias) != labels:
        fault = f"{ESTIMATOR} answers {len(facts.bias)} classes"
        raise BundleCorrupt(f"{fault}; the manifest has {labels} labels. {REBUILD}")
    if not facts.usual:
        raise BundleCorrupt(f"{ESTIMATOR} has no usual strangeness to compare a text's with. {REBUILD}")
    if facts.vocabulary != tokens:
        fault = f"{ESTIMATOR} has weights of {facts.vocabulary} tokens"
        raise BundleCorrupt(f"{fault}; {VOCABULARY} has {tokens}. {REBUILD}")
    if facts.partner not in manifest.heads:
        names = ", ".join(sorted(manifest.heads))
        raise BundleCorrupt(
            f"The estimator's partner {facts.partner!r} is not a head. Heads: {names}. {REBUILD}"
        )
