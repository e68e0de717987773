"""The example's model: its labels, which no other module of the tests knows, and other versions of it."""

import shutil
from pathlib import Path

import msgspec

from coldframe.model.bundle import load_manifest
from coldframe.model.files import MANIFEST, model_folder, served_models
from coldframe.releases.place import Place, Pointer
from coldframe.releases.publishing import describe_release, publish

SPACE = "sci.space"
CRYPTOGRAPHY = "sci.crypt"
BASEBALL = "rec.sport.baseball"
HOCKEY = "rec.sport.hockey"
MOTORCYCLES = "rec.motorcycles"

NAME = "topics"


def relabelled(bundle: Path, folder: Path, suffix: str) -> Path:
    """A copy of the models in which each label of the example ends with `suffix`: another version."""
    shutil.copytree(bundle, folder)
    manifest = load_manifest(folder, NAME)
    labels = [label + suffix for label in manifest.labels]
    changed = msgspec.structs.replace(manifest, labels=labels)
    sealed = msgspec.structs.replace(changed, version=changed.digest())
    (model_folder(folder, NAME) / MANIFEST).write_bytes(sealed.encode())
    return folder


def publish_folder(place: Place, folder: Path) -> Pointer:
    """The models of a folder as the current release."""
    return publish(place, folder, describe_release(folder, served_models(folder, "")))
