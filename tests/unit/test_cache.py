"""The prediction cache."""

from collections import OrderedDict

from hypothesis import given
from hypothesis import strategies as st

from coldframe.cache import PredictionCache, cache_key

parts = st.text(max_size=20)


@given(st.tuples(parts, parts, parts), st.tuples(parts, parts, parts))
def test_key_names_exactly_its_parts(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    """Two keys are equal exactly when version, head and text are."""
    assert (cache_key(*one) == cache_key(*other)) == (one == other)


def test_key_has_no_seams() -> None:
    """A text that begins with the end of a head's name is still another text."""
    assert cache_key("v", "head", "text") != cache_key("v", "headt", "ext")


@given(st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=400)), max_size=60), st.integers(0, 3000))
def test_never_above_its_bound(puts: list[tuple[int, bytes]], max_bytes: int) -> None:
    """However much is put in, the cache occupies at most what it may."""
    cache = PredictionCache(max_bytes)
    for number, value in puts:
        cache.put_many({bytes([number]): value})
        assert 0 <= cache.size_bytes <= max_bytes


@given(st.lists(st.one_of(st.integers(0, 5), st.tuples(st.integers(0, 5))), max_size=80))
def test_forgets_the_least_recently_used(steps: list[int | tuple[int]]) -> None:
    """It keeps what a plain ordered map of three entries keeps (a number gets, a tuple puts)."""
    cache, model = PredictionCache(3 * 250 + 3), OrderedDict[bytes, bytes]()
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
    cache = PredictionCache(0)
    cache.put_many({b"key": b"value"})
    assert cache.get_many([b"key"]) == {}
