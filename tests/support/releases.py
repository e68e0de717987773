"""Other versions of a built model, and places of releases, for tests."""

import shutil
from pathlib import Path

import msgspec

from coldframe.model.bundle import load_manifest
from coldframe.model.files import MANIFEST, model_folder, served_models
from coldframe.releases.place import Place, Pointer
from coldframe.releases.publishing import describe_release, publish
from tests.conftest import EXAMPLE


def relabelled(bundle: Path, folder: Path, suffix: str) -> Path:
    """A copy of the models in which each label of the example ends with `suffix`: another version."""
    shutil.copytree(bundle, folder)
    manifest = load_manifest(folder, EXAMPLE)
    labels = [label + suffix for label in manifest.labels]
    changed = msgspec.structs.replace(manifest, labels=labels)
    sealed = msgspec.structs.replace(changed, version=changed.digest())
    (model_folder(folder, EXAMPLE) / MANIFEST).write_bytes(sealed.encode())
    return folder


def publish_folder(place: Place, folder: Path) -> Pointer:
    """The models of a folder as the current release."""
    return publish(place, folder, describe_release(folder, served_models(folder, "")))
