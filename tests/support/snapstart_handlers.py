"""A function with SnapStart's hooks, which says which of them ran in its process."""

from __future__ import annotations

import os
from typing import Any

from snapshot_restore_py import register_after_restore, register_before_snapshot

_ran: list[str] = []


@register_before_snapshot  # type: ignore[untyped-decorator]
def before_snapshot() -> None:
    """Runs once the function is loaded."""
    _ran.append("before snapshot")


@register_after_restore  # type: ignore[untyped-decorator]
def after_restore() -> None:
    """Runs in each restored environment, and fails where the test says so."""
    _ran.append("after restore")
    if "FAILING" in os.environ:
        raise LookupError("no such secret")


def hooks(event: dict[str, Any], context: Any) -> Any:
    """The hooks that ran, and what the process was told of its start; `leave` ends it."""
    if event.get("do") == "leave":
        os._exit(3)
    return {"ran": _ran, "environ": dict(os.environ)}
