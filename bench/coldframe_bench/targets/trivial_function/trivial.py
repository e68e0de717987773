"""A function that does nothing: what is left is the emulator."""

from __future__ import annotations

from typing import Any


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answers an empty object."""
    return {}
