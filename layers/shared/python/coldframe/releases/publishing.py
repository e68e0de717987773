"""Publishing: verified models become a release, and the pointer of a place moves to it, or back."""

import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from coldframe.errors import BundleCorrupt, BundleMissing
from coldframe.gpu.files import gpu_encoder
from coldframe.model.bundle import FileEntry, Sealed, describe_file, load_encoder_manifest, load_pair
from coldframe.model.files import ENCODERS, MANIFEST, encoder_folder, model_folder
from coldframe.releases.place import Mark, Place, Pointer
from coldframe.releases.release import Release, path_in, read_release


def describe_release(model_dir: Path, names: Iterable[str]) -> Release:
    """The release of these models, the default first, with their encoders for CPUs and, if built, GPUs.

    Only files that manifests list belong to it: no report, which may quote texts. Raises a BundleError.
    """
    models: dict[str, str] = {}
    files: dict[str, FileEntry] = {}
    for name in names:
        manifest, encoder = load_pair(model_dir, name)
        models[name] = manifest.version
        files |= _files(model_folder(model_dir, name), name, manifest)
        files |= _files(encoder_folder(model_dir, encoder.name), f"{ENCODERS}/{encoder.name}", encoder)
        gpu = gpu_encoder(encoder.name)
        if (encoder_folder(model_dir, gpu) / MANIFEST).exists():
            manifest_of_gpu = load_encoder_manifest(model_dir, gpu)
            files |= _files(encoder_folder(model_dir, gpu), f"{ENCODERS}/{gpu}", manifest_of_gpu)
    return Release(models, dict(sorted(files.items())))


def _files(folder: Path, path: str, manifest: Sealed) -> dict[str, FileEntry]:
    entries = {MANIFEST: describe_file(folder, MANIFEST), **manifest.files}
    return {f"{path}/{file}": entry for file, entry in entries.items()}


def publish(place: Place, model_dir: Path, release: Release) -> Pointer:
    """Writes the release's files, then its list, and moves the pointer to it last. Returns the pointer.

    Until the pointer moves, no server sees the release. A command that was interrupted may be run again.
    Raises a BundleError, among them PlaceUnavailable and PointerChanged.
    """
    mark = place.mark()
    name = release.name()
    for file in release.files:
        with (model_dir / file).open("rb") as content:
            place.write(path_in(name, file), content)
    place.write(path_in(name), io.BytesIO(release.encode()))
    return _move(place, mark, name)


def roll_back(place: Place, to: str = "") -> Pointer:
    """Moves the pointer to the release before the current one. Returns the pointer.

    to: beginning of a release's digest, to choose another one. Its list of files is checked here, and the
    files by each server. Raises a BundleError.
    """
    mark = place.mark()
    if to:
        name = _named(place, to)
    else:
        before = mark.pointer()
        if before is None or not before.previous:
            raise BundleMissing(f"{place.address} has no earlier release. Name one with --to.")
        name = before.previous
    read_release(place, name)
    return _move(place, mark, name)


def releases(place: Place) -> Iterator[tuple[str, Release]]:
    """Names and lists of the releases in a place; those without a whole list are left out."""
    for name in place.names():
        try:
            yield name, read_release(place, name)
        except BundleMissing:
            continue


def _named(place: Place, start: str) -> str:
    names = [name for name in place.names() if name.startswith(start.removeprefix("sha256:"))]
    if len(names) == 1:
        return names[0]
    number = "no release" if not names else f"{len(names)} releases"
    raise BundleMissing(
        f"{place.address} has {number} whose digest starts with {start}."
        " Name one that `coldframe models --releases` lists."
    )


def _move(place: Place, mark: Mark, name: str) -> Pointer:
    """Moves the pointer, unless it is there already. A broken pointer is replaced."""
    try:
        before = mark.pointer()
    except BundleCorrupt:
        before = None
    if before is not None and before.release == name:
        return before
    pointer = Pointer(name, before.release if before else "")
    place.replace(pointer, mark.tag)
    return pointer
