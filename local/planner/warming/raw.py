"""Raw lines of a replay: JSON, first what it was, then a line for each policy, function and ratio."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from coldframe import __version__


def write_raw(path: Path, options: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> None:
    """A file that ends in .gz is compressed, the same lines to the same bytes."""
    run = {"type": "run", "benchmark": "warm", "version": __version__, "options": dict(options)}
    text = b"".join(msgspec.json.encode(line) + b"\n" for line in (run, *lines))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
