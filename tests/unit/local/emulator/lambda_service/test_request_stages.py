"""Stages of a request, read from the end of an invocation's log."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe_local.emulator.lambda_service.request_stages import StageView, request_stages

LINE: dict[str, Any] = {
    "event": "request",
    "duration_ms": 9.5,
    "stages_ms": {"cache": 1.0, "encode": 4.0},
    "total_ms": 6.0,
}
SPANS = [("cache", 0.5, 0.5), ("encode", 1.5, 4.0), ("cache", 5.5, 0.5)]


def tail(**changes: Any) -> bytes:
    return b"START RequestId: 1\n" + json.dumps(LINE | changes).encode() + b"\nEND RequestId: 1\n"


def test_spans_keep_their_places() -> None:
    """A stage that runs twice is there twice, each time where it was."""
    request = request_stages(tail(spans_ms=SPANS, trace_id="ab" * 16))
    assert request is not None
    assert request.stages == tuple(StageView(*span) for span in SPANS)
    assert (request.duration_ms, request.trace_id) == (9.5, "ab" * 16)


def test_sums_follow_each_other() -> None:
    """Without spans the stages come in the order of the line."""
    request = request_stages(tail())
    assert request is not None
    assert request.stages == (StageView("cache", 0.0, 1.0), StageView("encode", 1.0, 4.0))
    assert request.trace_id == ""


def test_write_to_the_store_comes_after_the_stages() -> None:
    """What the shared cache was told after the answer is a stage of its own."""
    request = request_stages(tail(cache_write={"values": 1, "of": 1, "ms": 2.5}))
    assert request is not None
    assert request.stages[-1] == StageView("cache write", 6.0, 2.5)


def test_last_line_counts() -> None:
    """Of several lines with stages, the request's own is the latest."""
    request = request_stages(tail() + tail(duration_ms=3.0))
    assert request is not None
    assert request.duration_ms == 3.0


@pytest.mark.parametrize(
    "log_tail",
    [
        b"",
        b"START\nEND\n",
        tail()[30:],
        tail(stages_ms=[1]),
        tail(stages_ms={"cache": -1.0}),
        tail(duration_ms=None),
        tail(spans_ms=[["cache", 1.0]]),
        tail(cache_write={"ms": "1"}),
        b'{"stages_ms":' + b"[" * 4000,
        b'{"duration_ms":1,"x":' + b"[" * 2000 + b"]" * 2000 + b',"stages_ms":{},"total_ms":1}',
        b'{"stages_ms":{"\xff":1},"duration_ms":1,"total_ms":1}',
    ],
)
def test_line_that_cannot_be_read_is_none(log_tail: bytes) -> None:
    """A function may print anything: a cut, broken or hostile line has no stages, and fails nothing."""
    assert request_stages(log_tail) is None


@given(st.binary(max_size=200))
def test_any_log_can_be_read(rest: bytes) -> None:
    """No bytes after the mark raise an error."""
    request_stages(b'{"stages_ms":' + rest)
