"""Encoders and models are what was built, to the byte."""

import shutil
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from coldframe.config import Settings
from coldframe.errors import BundleCorrupt, BundleMissing, ColdframeError, EncoderDrift
from coldframe.model.bundle import (
    FileEntry,
    Manifest,
    Sealed,
    describe_file,
    load_encoder_manifest,
    load_manifest,
    load_pair,
)
from coldframe.model.files import (
    ANSWERS,
    CENTROIDS,
    GOLDEN,
    HEAD_NAMES,
    MANIFEST,
    encoder_folder,
    head_file,
    model_folder,
)
from coldframe.model.verify import verify_bundle
from coldframe.monitoring.reference import REFERENCE
from coldframe.pipeline.models import load_models
from tests.conftest import ENCODER_NAME, EXAMPLE

OF_ENCODER = [MANIFEST, "encoder.ort", "tokenizer.json", "vocabulary.txt", GOLDEN]
OF_MODEL = [
    MANIFEST,
    ANSWERS,
    "estimator.bin",
    CENTROIDS,
    *(head_file(name) for name in HEAD_NAMES),
]
ENCODER_PART, MODEL_PART = f"encoders/{ENCODER_NAME}", EXAMPLE
FILES = [
    *((ENCODER_PART, name) for name in OF_ENCODER),
    *((MODEL_PART, name) for name in OF_MODEL),
]


def test_manifest_of_an_older_model(bundle: Path) -> None:
    """A manifest without temperatures of answers has the bytes, and the version, that it had before."""
    manifest = load_manifest(bundle, EXAMPLE)
    bare = msgspec.structs.replace(manifest.estimator, answer_temperatures=msgspec.UNSET)
    older = msgspec.structs.replace(manifest, estimator=bare)
    assert b"answer_temperatures" not in older.encode()
    tempered = msgspec.structs.replace(bare, answer_temperatures=(0.7, 0.8))
    assert msgspec.structs.replace(manifest, estimator=tempered).digest() != older.digest()


@pytest.fixture
def copy(bundle: Path, tmp_path: Path) -> Path:
    """A copy of the bundle that a test may damage."""
    return Path(shutil.copytree(bundle, tmp_path / "bundle"))


def test_verify_passes(bundle: Path) -> None:
    """A built bundle passes, and the encoder is close to the original weights."""
    [encoder], [model] = verify_bundle(bundle)
    assert (encoder.name, encoder.files) == (ENCODER_NAME, len(OF_ENCODER) - 1)
    assert (encoder.golden, encoder.lowest_cosine >= 0.97) == (36, True)
    assert (model.name, model.encoder, model.files) == (EXAMPLE, ENCODER_NAME, len(OF_MODEL) - 1)
    manifests = load_pair(bundle, EXAMPLE)
    assert (model.version, encoder.version) == tuple(manifest.version for manifest in manifests)


@pytest.mark.parametrize(("part", "name"), FILES)
@pytest.mark.parametrize("place", [0, 0.25, 0.5, 0.75, 1])
def test_one_byte_changed(copy: Path, part: str, name: str, place: float) -> None:
    """One changed byte, anywhere in any file, fails the check and names the file."""
    path = copy / part / name
    content = bytearray(path.read_bytes())
    position = int(place * (len(content) - 1))
    content[position] ^= 1
    path.write_bytes(content)
    with pytest.raises(BundleCorrupt) as raised:
        verify_bundle(copy)
    assert str(raised.value).startswith(str(path))


@pytest.mark.parametrize(("part", "name"), [file for file in FILES if file != (MODEL_PART, MANIFEST)])
def test_missing_file(copy: Path, part: str, name: str) -> None:
    """A missing file is named, with what to do."""
    (copy / part / name).unlink()
    with pytest.raises(BundleMissing, match=f"{part} has no readable {name} .*Run `coldframe build`"):
        verify_bundle(copy)


def test_folder_without_a_model(copy: Path) -> None:
    """A folder without a manifest is no model, and a bundle without a model is refused."""
    (copy / MODEL_PART / MANIFEST).unlink()
    with pytest.raises(BundleMissing, match=r"has no model.*Run `coldframe build`"):
        verify_bundle(copy)


def test_files_are_all_in_the_manifest(bundle: Path) -> None:
    """Nothing lies beside a manifest that it does not name, but the report, which names the version."""
    encoder, model = load_encoder_manifest(bundle, ENCODER_NAME), load_manifest(bundle, EXAMPLE)
    for folder, manifest, files in (
        (encoder_folder(bundle, ENCODER_NAME), encoder, OF_ENCODER),
        (model_folder(bundle, EXAMPLE), model, OF_MODEL),
    ):
        found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        assert found - {"report.json", "report.html", REFERENCE} == {MANIFEST, *manifest.files} == set(files)


def test_version_is_the_digest(bundle: Path) -> None:
    """Any change of the manifest's content is another version."""
    manifest, encoder = load_pair(bundle, EXAMPLE)
    for part in (manifest, encoder):
        assert part.version == part.digest()
        assert msgspec.structs.replace(part, name="other").digest() != part.version
    assert manifest.encoder.version == encoder.version
    assert encoder.with_windows(1).version != encoder.version
    assert encoder.with_windows(encoder.facts.max_windows) == encoder
    assert manifest.with_encoder(encoder.with_windows(1).version).version != manifest.version
    assert manifest.with_encoder(encoder.version) == manifest


def test_another_build_of_one_graph_is_the_same_version(bundle: Path) -> None:
    """The bytes of `encoder.ort` and the tools that made it are no part of the encoder's version."""
    encoder = load_encoder_manifest(bundle, ENCODER_NAME)
    files = encoder.files | {"encoder.ort": FileEntry("0" * 64, 1)}
    assert msgspec.structs.replace(encoder, files=files, built_with={}).digest() == encoder.version
    others = encoder.files | {GOLDEN: FileEntry("0" * 64, 1)}
    assert msgspec.structs.replace(encoder, files=others).digest() != encoder.version


def test_model_of_another_version_of_its_encoder(copy: Path) -> None:
    """A model that was trained on another version of its encoder is refused, and the error names both."""
    _, encoder = load_pair(copy, EXAMPLE)
    other = encoder.with_windows(1)
    (copy / ENCODER_PART / MANIFEST).write_bytes(other.encode())
    expected = f"{EXAMPLE!r} was trained on {ENCODER_NAME} of version {encoder.version[:15]}"
    for refuse in (partial(load_pair, copy, EXAMPLE), partial(verify_bundle, copy)):
        with pytest.raises(BundleCorrupt) as raised:
            refuse()
        assert expected in str(raised.value)
        assert f"has {other.version[:15]}…. Train the model again." in str(raised.value)
    with pytest.raises(BundleCorrupt, match="Train the model again"):
        load_models(Settings(model_dir=copy))


def test_rewritten_manifest(copy: Path) -> None:
    """A manifest that names another version than its digest is refused."""
    manifest = load_manifest(copy, EXAMPLE)
    forged: Manifest = msgspec.structs.replace(manifest, version="sha256:" + "0" * 64)
    (copy / EXAMPLE / MANIFEST).write_bytes(forged.encode())
    with pytest.raises(BundleCorrupt, match=MANIFEST):
        load_manifest(copy, EXAMPLE)


def test_drifting_encoder(copy: Path) -> None:
    """An encoder that does not reproduce the golden vectors is refused by name."""
    path = encoder_folder(copy, ENCODER_NAME) / GOLDEN
    golden = msgspec.json.decode(path.read_bytes())
    golden["vectors"][0]["embedding"][0] += 1.0
    golden["vectors"][0]["embedding"][1] -= 1.0
    golden["vectors"][0]["embedding"] = [x / 2 for x in golden["vectors"][0]["embedding"]]
    path.write_bytes(msgspec.json.encode(golden))
    encoder = reseal(path.parent, load_encoder_manifest(copy, ENCODER_NAME))
    model = load_manifest(copy, EXAMPLE).with_encoder(encoder.version)
    reseal(model_folder(copy, EXAMPLE), model)
    with pytest.raises(EncoderDrift, match="expected at least"):
        verify_bundle(copy)


def test_bundle_errors_are_ours() -> None:
    """Whatever is wrong with a bundle can be caught as one kind of error."""
    assert all(issubclass(kind, ColdframeError) for kind in (BundleCorrupt, BundleMissing, EncoderDrift))


M = TypeVar("M", bound=Sealed)


def reseal(folder: Path, manifest: M) -> M:
    """Writes the manifest that fits the files as they are now."""
    files = {name: describe_file(folder, name) for name in manifest.files}
    manifest = msgspec.structs.replace(manifest, files=files)
    sealed = msgspec.structs.replace(manifest, version=manifest.digest())
    (folder / MANIFEST).write_bytes(sealed.encode())
    return sealed
