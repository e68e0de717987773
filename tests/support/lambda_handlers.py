"""Functions that show what only Lambda itself gives them, or does with their end."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

Event = dict[str, Any]

handlers: Any = importlib.import_module("handlers")  # beside this file, where environments find it


def told(event: Event, context: Any) -> Any:
    """Does what the event says; what is not said here, `handlers.told` does."""
    kind = event.get("do", "echo")
    return _TOLD[kind](event, context) if kind in _TOLD else handlers.told(event, context)


def client_context(event: Event, context: Any) -> Any:
    """What the caller says of itself."""
    given = context.client_context
    return given and {"custom": given.custom, "env": given.env}


def oversized(event: Event, context: Any) -> str:
    """More than Lambda's payload limit."""
    return "x" * 7_000_000


def leave_quietly(event: Event, context: Any) -> None:
    """Ends the process as if nothing were wrong."""
    sys.exit(0)


def write(event: Event, context: Any) -> list[str]:
    """Adds a temporary file; all that are there."""
    tempfile.mkstemp(prefix="mine-")
    return sorted(str(path) for path in Path(tempfile.gettempdir()).glob("mine-*"))


def trace(event: Event, context: Any) -> str:
    """The trace that the invocation belongs to."""
    return os.environ["_X_AMZN_TRACE_ID"]


def log(event: Event, context: Any) -> None:
    """Logs at two levels."""
    logging.getLogger("own").info("not so important")
    logging.getLogger("own").warning("important")


_TOLD = {
    "context": client_context,
    "oversized": oversized,
    "leave quietly": leave_quietly,
    "write": write,
    "trace": trace,
    "log": log,
}

if "INITS" in os.environ:  # when this module was loaded, for tests of many init phases at once
    _started = time.monotonic()
    while time.monotonic() - _started < 0.05:
        pass
    (Path(os.environ["INITS"]) / f"{_started}-{time.monotonic()}").touch()
