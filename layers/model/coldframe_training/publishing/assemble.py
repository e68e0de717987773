"""Manifests: what an encoder's folder, or a model's, consists of, sealed with its digest."""

from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from coldframe.model.bundle import (
    EncoderFacts,
    EncoderManifest,
    EncoderVersion,
    EstimatorFacts,
    FileEntry,
    Manifest,
    Sealed,
    Source,
    describe_file,
)
from coldframe.model.files import ANSWERS, AUTO, ESTIMATOR, MANIFEST, model_folder
from coldframe.model.golden_answers import answers_of, probabilities_of_golden
from coldframe.model.verify import LoadedEncoder, verify_model
from coldframe.monitoring.reference import load_reference, write_reference
from coldframe_training.files.paths import FACTS
from coldframe_training.publishing.head_files import unpack_centroids, unpack_head
from coldframe_training.publishing.metrics import read_metrics
from coldframe_training.publishing.publish import copy_into

M = TypeVar("M", bound=Sealed)


class EncoderPart(NamedTuple):
    """Facts about the encoder, for a manifest. graph: `sha256:<hex>`."""

    facts: EncoderFacts
    graph: str
    source: Source
    built_with: dict[str, str]


def write_encoder_manifest(folder: Path, name: str, part: EncoderPart) -> EncoderManifest:
    """The manifest of the encoder in `folder`."""
    return _seal(folder, EncoderManifest(name=name, version="", files=_files(folder), **part._asdict()))


def assemble(model_dir: Path, name: str, trained: Path, encoder: LoadedEncoder) -> Manifest:
    """The model `name` in `model_dir`, verified, of a folder that training wrote.

    Golden answers that the folder lacks are added to it. Raises a BundleError.
    """
    folder = model_folder(model_dir, name)
    copy_into(folder, trained / ESTIMATOR)
    unpack_centroids(trained, folder)
    for head in read_metrics(trained).heads:
        unpack_head(trained, head, folder)
    if not (trained / ANSWERS).exists():
        unsealed = _manifest(folder, name, trained, encoder.manifest)
        probabilities = probabilities_of_golden(folder, unsealed, *encoder[1:])
        (trained / ANSWERS).write_bytes(msgspec.json.encode(answers_of(probabilities)))
    copy_into(folder, trained / ANSWERS)
    manifest = _seal(folder, _manifest(folder, name, trained, encoder.manifest))
    verify_model(model_dir, manifest, encoder)
    return manifest


def publish_reference(trained: Path, folder: Path, version: str) -> None:
    """Writes the monitor's reference beside a finished model, if training left one in `trained`.

    It is not a file of the manifest: a model's version says what it computes, not how it is watched.
    """
    if reference := load_reference(trained):
        write_reference(msgspec.structs.replace(reference, model=version), folder)


def _manifest(folder: Path, name: str, trained: Path, encoder: EncoderManifest) -> Manifest:
    metrics = read_metrics(trained)
    return Manifest(
        name=name,
        version="",
        files=_files(folder),
        encoder=EncoderVersion(encoder.name, encoder.version),
        estimator=msgspec.json.decode((trained / FACTS).read_bytes(), type=EstimatorFacts),
        labels=metrics.labels,
        default_head=AUTO,
        heads=metrics.heads,
        figures=metrics.figures,
        ensemble=metrics.ensemble,
    )


def _files(folder: Path) -> dict[str, FileEntry]:
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {file: describe_file(folder, file) for file in files}


def _seal(folder: Path, manifest: M) -> M:
    sealed = msgspec.structs.replace(manifest, version=manifest.digest())
    (folder / MANIFEST).write_bytes(sealed.encode())
    return sealed
