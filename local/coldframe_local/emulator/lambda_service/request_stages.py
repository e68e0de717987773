"""Stages of a request, read from the line that the function logged of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec

_MARK = b'"stages_ms":'

_Milliseconds = Annotated[float, msgspec.Meta(ge=0)]


@dataclass(frozen=True, slots=True)
class StageView:
    """A stage of a request. start_ms: since the function began with the request."""

    name: str
    start_ms: float
    duration_ms: float


@dataclass(frozen=True, slots=True)
class RequestStages:
    """Times of the function's own work on a request. trace_id: "" where traces are off."""

    duration_ms: float
    stages: tuple[StageView, ...]
    trace_id: str


class _Write(msgspec.Struct):
    ms: _Milliseconds


class _Line(msgspec.Struct):
    duration_ms: _Milliseconds
    stages_ms: dict[str, _Milliseconds]
    total_ms: _Milliseconds
    spans_ms: list[tuple[str, _Milliseconds, _Milliseconds]] = []
    cache_write: _Write | None = None
    trace_id: str = ""


_DECODER = msgspec.json.Decoder(_Line)


def request_stages(log_tail: bytes) -> RequestStages | None:
    """Stages by the last line about a request; None without such a line, or where it is cut or broken.

    log_tail: the end of an invocation's log. A line without spans has only sums: its stages then follow
    each other without a gap.
    """
    text = next((line for line in reversed(log_tail.split(b"\n")) if _MARK in line), None)
    if text is None:
        return None
    try:
        line = _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    stages = tuple(StageView(*span) for span in line.spans_ms) or _in_a_row(line.stages_ms)
    if line.cache_write is not None:
        stages += (StageView("cache write", line.total_ms, line.cache_write.ms),)
    return RequestStages(line.duration_ms, stages, line.trace_id)


def _in_a_row(stages_ms: dict[str, float]) -> tuple[StageView, ...]:
    start_ms = 0.0
    stages = []
    for name, duration_ms in stages_ms.items():
        stages.append(StageView(name, start_ms, duration_ms))
        start_ms += duration_ms
    return tuple(stages)
