"""The bundle is what was built, to the byte."""

import shutil
from pathlib import Path

import msgspec
import pytest

from coldframe.errors import BundleCorrupt, BundleMissing, ColdframeError, EncoderDrift
from coldframe.model.bundle import Manifest, load_manifest
from coldframe.model.files import MANIFEST, head_folder
from coldframe.model.verify import verify_bundle

ARRAYS = {
    "logreg": ["weight", "bias"],
    "rf": ["projection", "roots", "feature", "threshold", "right", "leaf"],
    "hgb": ["projection", "roots", "feature", "threshold", "right", "leaf", "baseline", "first_tree"],
    "mlp": ["weight_1", "bias_1", "weight_2", "bias_2"],
}
FILES = [
    MANIFEST,
    "encoder.ort",
    "tokenizer.json",
    "vocabulary.txt",
    "golden.json",
    "estimator.bin",
    *(f"{head_folder(name)}/{array}.npy" for name, arrays in ARRAYS.items() for array in arrays),
]


@pytest.fixture
def copy(bundle: Path, tmp_path: Path) -> Path:
    """A copy of the bundle that a test may damage."""
    return Path(shutil.copytree(bundle, tmp_path / "bundle"))


def test_verify_passes(bundle: Path) -> None:
    """A built bundle passes, and the encoder is close to the original weights."""
    report = verify_bundle(bundle)
    assert report.files == len(FILES) - 1
    assert report.lowest_cosine >= 0.97


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", [0, 0.5, 1])
def test_one_byte_changed(copy: Path, name: str, place: float) -> None:
    """One changed byte, anywhere in any file, fails the check and names the file."""
    path = copy / name
    content = bytearray(path.read_bytes())
    position = int(place * (len(content) - 1))
    content[position] ^= 1
    path.write_bytes(content)
    with pytest.raises(BundleCorrupt) as raised:
        verify_bundle(copy)
    assert str(raised.value).startswith(name)


@pytest.mark.parametrize("name", FILES)
def test_missing_file(copy: Path, name: str) -> None:
    """A missing file is named, with what to do."""
    (copy / name).unlink()
    with pytest.raises(BundleMissing, match=f"no readable {name} .*Run `coldframe build`"):
        verify_bundle(copy)


def test_files_are_all_in_the_manifest(bundle: Path) -> None:
    """Nothing lies in the bundle that the manifest does not name."""
    found = {path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file()}
    assert found == {MANIFEST, *load_manifest(bundle).files} == set(FILES)


def test_version_is_the_digest(bundle: Path) -> None:
    """Any change of the manifest's content is another version."""
    manifest = load_manifest(bundle)
    assert manifest.version == manifest.digest()
    assert msgspec.structs.replace(manifest, name="other").digest() != manifest.version
    assert manifest.with_windows(1).version != manifest.version
    assert manifest.with_windows(manifest.encoder.max_windows) == manifest


def test_rewritten_manifest(copy: Path) -> None:
    """A manifest that names another version than its digest is refused."""
    manifest = load_manifest(copy)
    forged: Manifest = msgspec.structs.replace(manifest, version="sha256:" + "0" * 64)
    (copy / MANIFEST).write_bytes(forged.encode())
    with pytest.raises(BundleCorrupt, match=MANIFEST):
        load_manifest(copy)


def test_drifting_encoder(copy: Path) -> None:
    """An encoder that does not reproduce the golden vectors is refused by name."""
    golden = msgspec.json.decode((copy / "golden.json").read_bytes())
    golden["vectors"][0]["embedding"][0] += 1.0
    golden["vectors"][0]["embedding"][1] -= 1.0
    golden["vectors"][0]["embedding"] = [x / 2 for x in golden["vectors"][0]["embedding"]]
    (copy / "golden.json").write_bytes(msgspec.json.encode(golden))
    reseal(copy)
    with pytest.raises(EncoderDrift, match="expected at least"):
        verify_bundle(copy)


def test_bundle_errors_are_ours() -> None:
    """Whatever is wrong with a bundle can be caught as one kind of error."""
    assert all(issubclass(kind, ColdframeError) for kind in (BundleCorrupt, BundleMissing, EncoderDrift))


def reseal(folder: Path) -> None:
    """Writes the manifest that fits the files as they are now."""
    from coldframe.model.bundle import describe_file

    old = load_manifest(folder)
    files = {name: describe_file(folder, name) for name in old.files}
    manifest = msgspec.structs.replace(old, files=files)
    manifest = msgspec.structs.replace(manifest, version=manifest.digest())
    (folder / MANIFEST).write_bytes(manifest.encode())
