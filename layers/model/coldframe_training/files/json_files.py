"""JSON that is committed."""

from pathlib import Path
from typing import Any

import msgspec


def write_json(path: Path, value: Any) -> None:
    """Indented JSON, so that a change can be read."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")
