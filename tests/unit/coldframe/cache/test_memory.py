"""The part of the prediction cache that is in the environment's memory."""

from collections import OrderedDict

from hypothesis import given
from hypothesis import strategies as st

from coldframe.cache.cache import Memory


@given(st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=400)), max_size=60), st.integers(0, 3000))
def test_never_above_its_bound(puts: list[tuple[int, bytes]], max_bytes: int) -> None:
    """However much is put in, the cache occupies at most what it may."""
    cache = Memory(max_bytes)
    for number, value in puts:
        cache.put_many({bytes([number]): value})
        assert 0 <= cache.size_bytes <= max_bytes


@given(st.lists(st.one_of(st.integers(0, 5), st.tuples(st.integers(0, 5))), max_size=80))
def test_forgets_the_least_recently_used(steps: list[int | tuple[int]]) -> None:
    """It keeps what a plain ordered map of three entries keeps (a number gets, a tuple puts)."""
    cache, model = Memory(3 * 250 + 3), OrderedDict[bytes, bytes]()
    for step in steps:
        key = bytes([step if isinstance(step, int) else step[0]])
        if isinstance(step, int):
            expected = {key: model[key]} if key in model else {}
            assert cache.get_many([key]) == expected
            if key in model:
                model.move_to_end(key)
        else:
            cache.put_many({key: b"x"})
            model[key] = b"x"
            model.move_to_end(key)
            if len(model) > 3:
                model.popitem(last=False)


def test_zero_bytes_keeps_nothing() -> None:
    """A cache of zero bytes is a cache turned off."""
    cache = Memory(0)
    cache.put_many({b"key": b"value"})
    assert cache.get_many([b"key"]) == {}
