"""A model bundle from its two parts: an encoder, and what was trained on its embeddings."""

import os
import shutil
from pathlib import Path
from typing import NamedTuple

import msgspec

from coldframe.model.bundle import (
    EncoderFacts,
    EstimatorFacts,
    Manifest,
    Source,
    describe_file,
    load_manifest,
)
from coldframe.model.files import AUTO, ENCODER, ESTIMATOR, GOLDEN, MANIFEST, TOKENIZER, VOCABULARY
from layers.model.head_files import unpack_head
from layers.model.metrics import read_metrics
from layers.model.paths import FACTS
from layers.model.publish import copy_into

_OF_ENCODER = (ENCODER, TOKENIZER, VOCABULARY, GOLDEN)


class EncoderPart(NamedTuple):
    """What a manifest says of its encoder. graph: `sha256:<hex>`."""

    facts: EncoderFacts
    graph: str
    source: Source
    built_with: dict[str, str]


def share_encoder(bundle: Path, folder: Path) -> EncoderPart:
    """The encoder of a built bundle in `folder`: the same files where the disk allows it, else copies."""
    for name in _OF_ENCODER:
        try:
            os.link(bundle / name, folder / name)
        except OSError:
            shutil.copyfile(bundle / name, folder / name)
    manifest = load_manifest(bundle)
    return EncoderPart(manifest.encoder, manifest.encoder_graph, manifest.source, manifest.built_with)


def copy_classifier(trained: Path, folder: Path) -> None:
    """Heads and estimator of a folder that training wrote."""
    copy_into(folder, trained / ESTIMATOR)
    for name in read_metrics(trained).heads:
        unpack_head(trained, name, folder)


def write_manifest(folder: Path, name: str, trained: Path, encoder: EncoderPart) -> Manifest:
    """The manifest of the files in `folder`, sealed with its digest."""
    metrics = read_metrics(trained)
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    manifest = Manifest(
        name=name,
        version="",
        encoder=encoder.facts,
        encoder_graph=encoder.graph,
        labels=metrics.labels,
        estimator=msgspec.json.decode((trained / FACTS).read_bytes(), type=EstimatorFacts),
        default_head=AUTO,
        heads=metrics.heads,
        source=encoder.source,
        built_with=encoder.built_with,
        files={file: describe_file(folder, file) for file in files},
    )
    sealed: Manifest = msgspec.structs.replace(manifest, version=manifest.digest())
    (folder / MANIFEST).write_bytes(sealed.encode())
    return sealed
