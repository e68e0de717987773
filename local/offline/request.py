"""What is to be classified, and how: the input of the state machine in functions/offline.yaml."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import msgspec

from coldframe.errors import ColdframeError

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

    def as_input(self) -> dict[str, Any]:
        """As the state machine reads it."""
        return {
            "source": {"bucket": self.source.bucket, "key": self.source.key},
            "results": {"bucket": self.results.bucket, "prefix": self.results.key},
            "format": self.format,
            "text": self.text,
            "heads": self.heads,
            "model": self.model,
            "batch_items": self.batch_items,
            "concurrency": self.concurrency,
            "tolerated_failure_percentage": self.tolerated_failure_percentage,
            "cache": self.cache,
        }

    def default_name(self) -> str:
        """The same for the same request, so that a second start goes on with the first."""
        digest = hashlib.sha256(msgspec.json.encode(self.as_input(), order="sorted")).hexdigest()
        return f"{PurePosixPath(self.source.key).stem[:40]}-{digest[:12]}"


def place_of(address: str) -> Place:
    """An `s3://bucket/key`. Raises RequestUnusable."""
    parts = urlsplit(address, allow_fragments=False)
    if parts.scheme != "s3" or not parts.netloc or not parts.path.strip("/"):
        raise RequestUnusable(f"{address!r} is no place in S3. Expected s3://bucket/key.")
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
