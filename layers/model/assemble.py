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
from coldframe.model.files import AUTO, ESTIMATOR, MANIFEST
from layers.model.head_files import unpack_head
from layers.model.metrics import read_metrics
from layers.model.paths import FACTS
from layers.model.publish import copy_into

M = TypeVar("M", bound=Sealed)


class EncoderPart(NamedTuple):
    """What a manifest says of its encoder. graph: `sha256:<hex>`."""

    facts: EncoderFacts
    graph: str
    source: Source
    built_with: dict[str, str]


def copy_classifier(trained: Path, folder: Path) -> None:
    """Heads and estimator of a folder that training wrote."""
    copy_into(folder, trained / ESTIMATOR)
    for name in read_metrics(trained).heads:
        unpack_head(trained, name, folder)


def write_encoder_manifest(folder: Path, name: str, part: EncoderPart) -> EncoderManifest:
    """The manifest of the encoder in `folder`."""
    return _seal(folder, EncoderManifest(name=name, version="", files=_files(folder), **part._asdict()))


def write_manifest(folder: Path, name: str, trained: Path, encoder: EncoderManifest) -> Manifest:
    """The manifest of the model in `folder`, which was trained on `encoder`."""
    metrics = read_metrics(trained)
    manifest = Manifest(
        name=name,
        version="",
        files=_files(folder),
        encoder=EncoderVersion(encoder.name, encoder.version),
        estimator=msgspec.json.decode((trained / FACTS).read_bytes(), type=EstimatorFacts),
        labels=metrics.labels,
        default_head=AUTO,
        heads=metrics.heads,
    )
    return _seal(folder, manifest)


def _files(folder: Path) -> dict[str, FileEntry]:
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {file: describe_file(folder, file) for file in files}


def _seal(folder: Path, manifest: M) -> M:
    sealed = msgspec.structs.replace(manifest, version=manifest.digest())
    (folder / MANIFEST).write_bytes(sealed.encode())
    return sealed
