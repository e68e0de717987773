"""The prediction cache."""

from hypothesis import given
from hypothesis import strategies as st

from coldframe.cache.cache import PredictionCache, cache_key, load_cache
from coldframe.cache.dynamodb_store import DynamoDbStore
from coldframe.cache.policy import Costs, Policy
from coldframe.cache.shared import SecondLevel
from coldframe.config import Settings
from coldframe.model.files import AUTO
from tests.conftest import tiny_manifest, tiny_predictor
from tests.unit.coldframe.cache.test_dynamodb_store import FakeClients, FakeTable, FakeTime

parts = st.text(max_size=20)


@given(st.tuples(parts, parts, parts), st.tuples(parts, parts, parts))
def test_key_names_exactly_its_parts(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    """Two keys are equal exactly when version, head and text are."""
    assert (cache_key(*one) == cache_key(*other)) == (one == other)


def test_key_has_no_seams() -> None:
    """A text that begins with the end of a head's name is still another text."""
    assert cache_key("v", "head", "text") != cache_key("v", "headt", "ext")


HEADS = ["first", "second", AUTO]
requests = st.lists(
    st.tuples(
        st.integers(0, 1),  # which of two environments
        st.lists(st.sampled_from(["a", "b c", "d", "e", "f"]), min_size=1, max_size=6),
        st.lists(st.sampled_from(HEADS), min_size=1, max_size=3, unique=True),
        st.booleans(),  # cache
        st.integers(0, 60),  # rows that the table processes of this request's first call
    ),
    max_size=8,
)


@given(requests, st.sampled_from(Policy), st.sampled_from([0, 900, 1 << 20]))
def test_caches_change_no_answer(
    asked: list[tuple[int, list[str], list[str], bool, int]], policy: Policy, l1_bytes: int
) -> None:
    """Whatever was asked before, here or elsewhere, answers are the same to the bit and counted once."""
    table, time = FakeTable([]), FakeTime()
    environments = [tiny_predictor(cache=two_levels(table, time, policy, l1_bytes)) for _ in range(2)]
    plain = tiny_predictor(cache_bytes=0)
    for which, texts, heads, use_cache, processed in asked:
        table.processed = [processed]
        prediction = environments[which].predict(texts, heads, use_cache)
        expected = plain.predict(texts, heads, use_cache=False).probabilities
        for head in heads:
            assert prediction.probabilities[head] == expected[head]
        counted = prediction.usage.cache
        total = counted.l1 + counted.l2 + counted.embedding + counted.miss
        assert total == len(set(texts)) * len(heads)
        assert (counted.errors, counted.corrupt, counted.expired) == (0, 0, 0)
        if not use_cache:
            assert counted.miss == total
        environments[which].cache.save()


def two_levels(table: FakeTable, time: FakeTime, policy: Policy, l1_bytes: int) -> PredictionCache:
    """A cache over a table in memory."""
    store = DynamoDbStore("table", FakeClients(table), time.sleep, jitter=lambda: 0.5)
    costs = Costs(max_text_tokens=100, keys_per_call=100)
    second = SecondLevel(store, None, costs, policy, 60.0, 1000, clock=time.clock, now=time.clock)
    return PredictionCache(l1_bytes, second)


def test_embeddings_alone() -> None:
    """Without heads it is the embedding that is looked up."""
    cache = PredictionCache(1 << 20)
    known = cache.lookup("v", [], ["text"])
    assert (known.embeddings, known.lacks([], "text")) == ({}, True)
    cache.keep(known, {}, {"text": b"four"}, tokens=3, spent_ms=1.0)
    assert cache.lookup("v", [], ["text"]).embeddings == {"text": b"four"}
    assert cache.lookup("w", [], ["text"]).embeddings == {}


def test_no_table_no_second_level() -> None:
    """Without a table, or turned off, there is level 1 alone; with one, nothing is imported or called yet."""
    for settings in (Settings(), Settings(cache_table="t", cache_policy="off")):
        assert load_cache(settings, tiny_manifest())._second is None
    assert load_cache(Settings(cache_table="t"), tiny_manifest())._second is not None


def test_unsaved_values_do_not_pile_up() -> None:
    """Who never saves keeps the values of the last request, not of all."""
    table, time = FakeTable([]), FakeTime()
    cache = two_levels(table, time, Policy.ALWAYS, 0)
    predictor = tiny_predictor(cache=cache)
    for text in ("a", "b", "c"):
        predictor.predict([text], ["first"])
    saved = cache.save()
    assert saved is not None
    assert (saved.values, saved.of) == (2, 2)
