"""The end of an invocation's log."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from coldframe_local.emulator.lambda_service.report import TAIL_BYTES, LogTail, timestamp


@given(st.lists(st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=3000)))
def test_log_tail_is_the_end_of_the_log(lines: list[str]) -> None:
    """However much is written, the last 4 KB are those of the whole."""
    tail = LogTail()
    for line in lines:
        tail.add(line)
    whole = "".join(f"{line}\n" for line in lines).encode()
    assert bytes(tail) == whole[-TAIL_BYTES:]


def test_timestamp_is_that_of_cloudwatch() -> None:
    """UTC with milliseconds."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", timestamp())
