"""Passes of one call: one after the other, or several at once."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.model.encoder import TextEncoder
from coldframe.model.passes import ParallelEncoder
from coldframe.model.tokenizer import Window
from coldframe.timing import NO_DEADLINE, Deadline, MovingAverage
from coldframe.vectors import Vector
from tests.conftest import TinyEncoder

PASSES = pytest.mark.parametrize("passes", [1, 3], ids=["in turns", "at once"])


def text_encoder(encoder: TinyEncoder, passes: int, ms_per_token: float = 0.1) -> TextEncoder:
    """Of passes of at most 20 tokens."""
    if passes == 1:
        return TextEncoder(encoder, 20, MovingAverage(ms_per_token))
    return ParallelEncoder(encoder, 20, MovingAverage(ms_per_token), passes)


@given(st.lists(st.text("abc 1é", max_size=20), max_size=30))
def test_embeddings_are_the_same(texts: list[str]) -> None:
    """To the bit, however many passes run at once; and so are the counts."""
    encoder = TinyEncoder()
    windows = encoder.cut(texts)
    one_by_one = text_encoder(encoder, 1).embed(windows, NO_DEADLINE)
    assert text_encoder(encoder, 3).embed(windows, NO_DEADLINE) == one_by_one
    assert one_by_one.windows == sum(map(len, windows))


def test_several_passes_run_at_once() -> None:
    """Two passes wait for each other inside the encoder: neither would end if they ran in turns."""
    both = threading.Barrier(2, timeout=60)

    class Meeting(TinyEncoder):
        def encode(self, rows: list[Window]) -> list[Vector]:  # type: ignore[override]
            both.wait()
            return super().encode(rows)

    encoder = Meeting()
    embedded = text_encoder(encoder, 3).embed(encoder.cut(["a", "abc"]), NO_DEADLINE)
    assert embedded.batches == 2


@PASSES
def test_passes_without_time_are_left_out(passes: int) -> None:
    """Short texts have their embeddings, long ones have none, and nothing is said of those."""
    encoder = TinyEncoder()
    windows = encoder.cut(["a", "abcdabcdabcd"])
    now_s = 0.0
    found = text_encoder(encoder, passes, ms_per_token=100.0).embed(windows, Deadline(0.5, lambda: now_s))
    short, long = found.vectors
    assert short is not None and len(np.frombuffer(short, dtype=np.float32)) == encoder.dimension
    assert long is None
    assert (found.batches, found.windows, found.tokens) == (1, 1, 3)


@PASSES
def test_a_pass_that_fails_fails_the_call(passes: int) -> None:
    """Its error is the caller's, and the next call is answered."""

    class Broken(TinyEncoder):
        def encode(self, rows: list[Window]) -> list[Vector]:  # type: ignore[override]
            if len(rows[0]) > 5:
                raise MemoryError("no room")
            return super().encode(rows)

    encoder = Broken()
    texts = text_encoder(encoder, passes)
    with pytest.raises(MemoryError, match="no room"):
        texts.embed(encoder.cut(["a", "abcd", "ab"]), NO_DEADLINE)
    assert texts.embed(encoder.cut(["a"]), NO_DEADLINE).batches == 1
