"""A release: the models that a server serves together, as a list of files that its digest names."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from hashlib import sha256  # OpenSSL's, for files of any size
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct

from coldframe.errors import BundleCorrupt
from coldframe.model.bundle import FileEntry
from coldframe.model.files import record_default
from coldframe.releases.place import RELEASES, Place

LIST = "release.json"
_PREFIX = "coldframe-release-"
_MAX_LIST_BYTES = 16_777_216
_AGAIN = "Publish it again with `coldframe models --publish`."


class Release(Struct, frozen=True, forbid_unknown_fields=True):
    """List of a release's files. Its digest is the release's name.

    models: versions by the name of the model, the default one first. files: by their path in a folder of
    encoders and models.
    """

    models: dict[str, str]
    files: dict[str, FileEntry]

    def encode(self) -> bytes:
        """The bytes of `release.json`."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"

    def name(self) -> str:
        """The digest in hexadecimal."""
        return sha256(self.encode()).hexdigest()


class Copy:
    """A release on this machine, checked byte by byte, in a temporary folder that `close` removes.

    A lock on the folder says that its process lives: the next process removes what a killed one left.
    """

    def __init__(self, name: str, release: Release) -> None:
        """Creates the folder, empty."""
        self.name, self.release = name, release
        _remove_leftovers()
        self._folder = tempfile.TemporaryDirectory(prefix=_PREFIX)
        self._lock = _lock(self.path)

    @property
    def path(self) -> Path:
        """The folder of encoders and models."""
        return Path(self._folder.name)

    def close(self) -> None:
        """Removes the files. May be called more than once."""
        self._folder.cleanup()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _remove_leftovers() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if (lock := _lock(folder)) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """A locked descriptor; None for the folder of another process, or of another user."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def path_in(name: str, file: str = LIST) -> str:
    """Path of a release's file in its place."""
    return f"{RELEASES}/{name}/{file}"


def read_release(place: Place, name: str) -> Release:
    """The list of a release's files. Raises BundleMissing, BundleCorrupt, PlaceUnavailable."""
    content = b"".join(_limited(place.read(path_in(name)), _MAX_LIST_BYTES, name, LIST))
    if sha256(content).hexdigest() != name:
        raise BundleCorrupt(f"{LIST} of release {name[:12]}… has another digest. {_AGAIN}")
    try:
        release = msgspec.json.decode(content, type=Release)
    except msgspec.MsgspecError as exc:
        raise BundleCorrupt(f"{LIST} of release {name[:12]}… cannot be read: {exc}. {_AGAIN}") from exc
    if not release.models:
        raise BundleCorrupt(f"{LIST} of release {name[:12]}… names no model. {_AGAIN}")
    for file in release.files:
        path = PurePosixPath(file)
        if path.is_absolute() or ".." in path.parts or str(path) != file:
            raise BundleCorrupt(f"{LIST} of release {name[:12]}… has a path outside of its folder. {_AGAIN}")
    return release


def fetch(place: Place, name: str, check: Callable[[], None] = lambda: None) -> Copy:
    """A copy of a release in a new temporary folder, each file compared with its digest.

    The copy stays when the place changes or is gone. check: called between pieces; its error ends the copy.
    Raises BundleMissing, BundleCorrupt, PlaceUnavailable, and OSError for a full disk.
    """
    release = read_release(place, name)
    copy = Copy(name, release)
    try:
        record_default(copy.path, next(iter(release.models)))
        for file, entry in release.files.items():
            _fetch_file(place, name, file, entry, copy.path / file, check)
    except BaseException:
        copy.close()
        raise
    return copy


def _fetch_file(
    place: Place, name: str, file: str, entry: FileEntry, target: Path, check: Callable[[], None]
) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = sha256(), 0
    with target.open("wb") as copied:
        for chunk in _limited(place.read(path_in(name, file)), entry.bytes, name, file):
            check()
            digest.update(chunk)
            size += copied.write(chunk)
    if FileEntry(digest.hexdigest(), size) != entry:
        raise BundleCorrupt(f"{file} of release {name[:12]}… differs from its digest. {_AGAIN}")


def _limited(chunks: Iterator[bytes], most_bytes: int, name: str, file: str) -> Iterator[bytes]:
    for chunk in chunks:
        most_bytes -= len(chunk)
        if most_bytes < 0:
            raise BundleCorrupt(f"{file} of release {name[:12]}… is longer than listed. {_AGAIN}")
        yield chunk
