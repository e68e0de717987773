"""Places of releases: a folder on a volume, or a prefix in S3, with a pointer to one release.

releases/HEX/    a release: its list of files, and these files; never changed
current          the pointer: which release is current, and which was before
"""

import fcntl
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple, Protocol

import msgspec
from msgspec import Meta, Struct

from coldframe.errors import BundleCorrupt, BundleError, BundleMissing
from coldframe.whole_file import whole_file

RELEASES, CURRENT = "releases", "current"
S3 = "s3://"
_CHUNK_BYTES = 1_048_576
_MAX_POINTER_BYTES = 4096
_TIMEOUT_S = 10
_Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
_DigestOrNone = Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?$")]


class PlaceUnavailable(BundleError):
    """A place of releases cannot be read or written now."""


class PointerChanged(BundleError):
    """Another command has changed the pointer in the meantime."""


class Pointer(Struct, frozen=True, forbid_unknown_fields=True):
    """The current release, and the one before it or an empty string; digests in hexadecimal."""

    release: _Digest
    previous: _DigestOrNone = ""

    def encode(self) -> bytes:
        """The bytes of `current`."""
        return msgspec.json.encode(self) + b"\n"


class Mark(NamedTuple):
    """A pointer's content as it was read. tag: identity of this content, for `replace`; empty: no pointer."""

    address: str
    content: bytes
    tag: str

    def pointer(self) -> Pointer | None:
        """The pointer; None where there is none. Raises BundleCorrupt when the content is not a pointer."""
        if not self.tag:
            return None
        try:
            return msgspec.json.decode(self.content, type=Pointer)
        except msgspec.MsgspecError:
            raise BundleCorrupt(
                f"The pointer {CURRENT!r} of {self.address} does not name a release."
                " Run `coldframe models --publish`, or `--roll-back` with `--to`."
            ) from None


class Place(Protocol):
    """Files by their names. Each call raises PlaceUnavailable when the storage does not answer."""

    address: str

    def read(self, name: str) -> Iterator[bytes]:
        """Content of a file, in pieces. Raises BundleMissing for a missing file."""
        ...

    def write(self, name: str, content: BinaryIO) -> None:
        """Writes a file, which appears whole or not at all."""
        ...

    def names(self) -> list[str]:
        """Releases of the place, whole or not, sorted by their digests."""
        ...

    def mark(self) -> Mark:
        """The pointer as it is now."""
        ...

    def replace(self, pointer: Pointer, tag: str) -> None:
        """Writes the pointer. Raises PointerChanged unless it still has the tag."""
        ...


def open_place(address: str) -> Place:
    """The place at `s3://BUCKET/PREFIX`, or in a folder. Calls nothing yet."""
    return BucketPlace(address) if address.startswith(S3) else FolderPlace(Path(address))


class FolderPlace:
    """A place in a folder, such as a volume that several machines mount."""

    def __init__(self, folder: Path) -> None:
        self.address = str(folder)
        self._folder = folder

    def read(self, name: str) -> Iterator[bytes]:
        with self._named(name), (self._folder / name).open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk

    def write(self, name: str, content: BinaryIO) -> None:
        with self._named(name):
            target = self._folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(target) as file:
                while chunk := content.read(_CHUNK_BYTES):
                    file.write(chunk)

    def names(self) -> list[str]:
        try:
            return sorted(path.name for path in (self._folder / RELEASES).iterdir() if path.name[0] != ".")
        except FileNotFoundError:
            return []
        except OSError as exc:
            raise self._unavailable(exc) from exc

    def mark(self) -> Mark:
        try:
            content = next(self.read(CURRENT), b"")
        except BundleMissing:
            return Mark(self.address, b"", "")
        return Mark(self.address, content, _tag(content))

    def replace(self, pointer: Pointer, tag: str) -> None:
        with self._named(CURRENT):
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._folder, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if self.mark().tag != tag:
                    raise _changed(self.address)
                self.write(CURRENT, io.BytesIO(pointer.encode()))
            finally:
                os.close(descriptor)

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as exc:
            raise BundleMissing(_no_file(self.address, name)) from exc
        except OSError as exc:
            raise self._unavailable(exc) from exc

    def _unavailable(self, error: OSError) -> PlaceUnavailable:
        return PlaceUnavailable(
            f"{self.address} does not answer: {error.strerror or type(error).__name__}."
            " Check the volume and its rights."
        )


def _tag(content: bytes) -> str:
    return sha256(content).hexdigest()


class BucketPlace:
    """A place below a prefix in S3. boto3 is imported at the first call."""

    def __init__(self, address: str) -> None:
        bucket, _, prefix = address.removeprefix(S3).partition("/")
        if not bucket:
            raise PlaceUnavailable(f"{address} names no bucket. Write s3://BUCKET or s3://BUCKET/PREFIX.")
        self.address = address.rstrip("/")
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._client: Any = None

    def read(self, name: str) -> Iterator[bytes]:
        with self._called(name):
            yield from self._get(name)["Body"].iter_chunks(_CHUNK_BYTES)

    def write(self, name: str, content: BinaryIO) -> None:
        with self._called(name):
            self._s3.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content)

    def names(self) -> list[str]:
        start = f"{self._prefix}{RELEASES}/"
        with self._called(RELEASES):
            pages = self._s3.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=start, Delimiter="/"
            )
            folders = [entry["Prefix"] for page in pages for entry in page.get("CommonPrefixes", ())]
        return sorted(folder.removeprefix(start).rstrip("/") for folder in folders)

    def mark(self) -> Mark:
        try:
            with self._called(CURRENT):
                answer = self._get(CURRENT)
                content = answer["Body"].read(_MAX_POINTER_BYTES)
        except BundleMissing:
            return Mark(self.address, b"", "")
        return Mark(self.address, content, answer["ETag"])

    def replace(self, pointer: Pointer, tag: str) -> None:
        condition = {"IfMatch": tag} if tag else {"IfNoneMatch": "*"}
        with self._called(CURRENT):
            self._s3.put_object(
                Bucket=self._bucket, Key=self._prefix + CURRENT, Body=pointer.encode(), **condition
            )

    def _get(self, name: str) -> Any:
        return self._s3.get_object(Bucket=self._bucket, Key=self._prefix + name)

    @property
    def _s3(self) -> Any:
        if self._client is None:
            import boto3
            from botocore.config import Config

            retries = {"mode": "standard", "total_max_attempts": 3}
            config = Config(
                connect_timeout=_TIMEOUT_S,
                read_timeout=_TIMEOUT_S,
                retries=retries,
                signature_version="s3v4",  # objects under KMS refuse version 2, the default of older regions
            )
            self._client = boto3.client("s3", config=config)
        return self._client

    @contextmanager
    def _called(self, name: str) -> Iterator[None]:
        """Errors of boto3 as those of a place. No answer of AWS is quoted but its code."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except ClientError as exc:
            code = exc.response["Error"]["Code"]
            if code in ("NoSuchKey", "404"):
                raise BundleMissing(_no_file(self.address, name)) from exc
            if code in ("PreconditionFailed", "ConditionalRequestConflict"):
                raise _changed(self.address) from exc
            raise self._unavailable(code) from exc
        except (BotoCoreError, OSError) as exc:
            raise self._unavailable(type(exc).__name__) from exc

    def _unavailable(self, code: str) -> PlaceUnavailable:
        return PlaceUnavailable(
            f"{self.address} does not answer: {code}. Check the bucket's name, credentials and network."
        )


def _no_file(address: str, name: str) -> str:
    return f"{address} has no {name}. Publish the release again with `coldframe models --publish`."


def _changed(address: str) -> PointerChanged:
    return PointerChanged(f"Another command has changed {CURRENT!r} of {address}. Run this command again.")
