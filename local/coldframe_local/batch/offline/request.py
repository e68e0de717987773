"""Request of an offline run: the input of the state machine in functions/offline.yaml."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import msgspec

from coldframe.errors import ColdframeError

NO_VERSION = "null"
"""S3's name for the version of an object in a bucket without versions.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/versioning-workflows.html, read 2026-11-22
"""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
"""https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html, read 2026-11-22"""

FORMATS = {".csv": "CSV", ".jsonl": "JSONL", ".ndjson": "JSONL", ".parquet": "PARQUET"}


class RequestUnusable(ColdframeError):
    """An address or a format cannot be used."""


@dataclass(frozen=True)
class Place:
    """An object, or a prefix of objects."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


@dataclass(frozen=True)
class OfflineRequest:
    """One run. text: the column. heads: None for the model's default one. model: None for the default one.

    cache: whether the shared cache is asked and filled.
    etag, version_id: of the object that is read; `null` is the version of a bucket without versions.
    version: of the model that answers. `pin` finds all three.
    traceparent: W3C's header of whoever starts the run; "": the run is a trace of its own.
    """

    source: Place
    results: Place
    format: str
    text: str
    heads: list[str] | None
    model: str | None
    batch_items: int
    concurrency: int
    tolerated_failure_percentage: float
    cache: bool = False
    etag: str = ""
    version_id: str = NO_VERSION
    version: str | None = None
    traceparent: str = ""

    def as_input(self) -> dict[str, Any]:
        """As the state machine reads it. A run that is resumed stays in its trace."""
        request = self.content()
        return request | {"traceparent": self.traceparent or _own_trace(request)}

    def content(self) -> dict[str, Any]:
        """The request without its trace."""
        return {
            "source": {
                "bucket": self.source.bucket,
                "key": self.source.key,
                "etag": self.etag,
                "version_id": self.version_id,
            },
            "results": {"bucket": self.results.bucket, "prefix": self.results.key},
            "format": self.format,
            "text": self.text,
            "heads": self.heads,
            "model": self.model,
            "version": self.version,
            "batch_items": self.batch_items,
            "concurrency": self.concurrency,
            "tolerated_failure_percentage": self.tolerated_failure_percentage,
            "cache": self.cache,
        }

    def identity(self) -> dict[str, Any]:
        """Options that a run depends on, by the names that a user knows."""
        request = self.content()
        source = request.pop("source")
        version = request.pop("version")
        place = {name: source.pop(name) for name in ("bucket", "key")}
        return {"request": request | {"source": place}, "object": source, "model version": version}

    def default_name(self) -> str:
        """Name by request, object and model: a second start resumes the first one, unless one has changed."""
        digest = hashlib.sha256(msgspec.json.encode(self.content(), order="sorted")).hexdigest()
        stem = _NOT_IN_NAMES.sub("-", PurePosixPath(self.source.key).stem[:40])
        return f"{stem}-{digest[:12]}"


def _own_trace(content: dict[str, Any]) -> str:
    """The header of a trace whose ids are made from a request's content."""
    digest = hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()
    return f"00-{digest[:32]}-{digest[32:48]}-01"


def place_of(address: str) -> Place:
    """An `s3://bucket/key`. Raises RequestUnusable."""
    parts = urlsplit(address, allow_fragments=False)
    if parts.scheme != "s3" or not parts.netloc or not parts.path.strip("/"):
        raise RequestUnusable(f"{address!r} is not a place in S3. Expected s3://bucket/key.")
    key = parts.path + (f"?{parts.query}" if parts.query else "")
    return Place(parts.netloc, key.lstrip("/"))


def format_of(key: str) -> str:
    """By the end of the key. Raises RequestUnusable."""
    suffix = PurePosixPath(key).suffix.lower()
    if suffix not in FORMATS:
        raise RequestUnusable(
            f"{key} ends in {suffix or 'nothing'}, expected {', '.join(FORMATS)}. Say its --format."
        )
    return FORMATS[suffix]
