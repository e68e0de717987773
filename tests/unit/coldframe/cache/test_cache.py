"""The prediction cache."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.api.api import Api
from coldframe.cache.cache import CacheScope, PredictionCache, cache_key, load_cache
from coldframe.cache.dynamodb_store import DynamoDbStore, Item, to_row
from coldframe.cache.policy import Costs, Policy
from coldframe.cache.shared import SharedCache
from coldframe.cache.values import Kind, Shapes, encode
from coldframe.config import Settings
from coldframe.model.files import AUTO
from coldframe.timing import MovingAverage, StartMark
from tests.conftest import post, served, tiny_encoder_manifest, tiny_manifest, tiny_predictor
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
SHAPES = Shapes(labels=3, dimension=8)
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
        expected = plain.predict(texts, heads, use_cache=False).answers
        for head in heads:
            assert prediction.answers[head] == expected[head]
        counted = prediction.usage.cache
        total = counted.l1 + counted.l2 + counted.embedding + counted.miss
        assert total == len(set(texts)) * len(heads)
        assert (counted.errors, counted.corrupt, counted.expired) == (0, 0, 0)
        if not use_cache:
            assert counted.miss == total
        environments[which].cache.save(prediction.unsaved)


def two_levels(table: FakeTable, time: FakeTime, policy: Policy, l1_bytes: int) -> PredictionCache:
    """A cache over a table in memory."""
    store = DynamoDbStore("table", FakeClients(table), time.sleep, jitter=lambda: 0.5)
    costs = Costs(100, 100, MovingAverage(0.1))
    shared = SharedCache(store, None, costs, policy, 60.0, 1000, clock=time.clock, now=time.clock)
    return PredictionCache(l1_bytes, shared)


def test_embeddings_alone() -> None:
    """Without heads it is the embedding that is looked up."""
    cache = PredictionCache(1 << 20)
    scope = CacheScope("model", "encoder", SHAPES)
    known = cache.lookup(scope, [], ["text"])
    assert (known.embeddings, known.lacking([], ["text"])) == ({}, ["text"])
    cache.keep(known, {}, {"text": b"four"}, tokens=3)
    assert cache.lookup(scope, [], ["text"]).embeddings == {"text": b"four"}
    assert cache.lookup(scope._replace(model="other"), [], ["text"]).embeddings == {"text": b"four"}
    assert cache.lookup(scope._replace(encoder="other"), [], ["text"]).embeddings == {}


def test_no_table_no_shared_cache() -> None:
    """Without a table, or turned off, there is the memory alone; with one, nothing is called yet."""
    facts = tiny_encoder_manifest().facts
    for settings in (Settings(), Settings(cache_table="t", cache_policy="off")):
        assert load_cache(settings, facts, MovingAverage(0.1))._shared is None
    assert load_cache(Settings(cache_table="t"), facts, MovingAverage(0.1))._shared is not None


def test_unsaved_values_travel_with_their_answer() -> None:
    """What one prediction has to write is written at its own save, whatever was predicted meanwhile."""
    table, time = FakeTable([]), FakeTime()
    cache = two_levels(table, time, Policy.ALWAYS, 0)
    predictor = tiny_predictor(cache=cache)
    one, other = (predictor.predict([text], ["first"]) for text in ("a", "b"))
    for prediction in (one, other):
        saved = cache.save(prediction.unsaved)
        assert saved is not None
        assert (saved.values, saved.of) == (2, 2)
    embedded = predictor.embed(["c"])
    saved = cache.save(embedded.unsaved)
    assert saved is not None
    assert (saved.values, saved.of) == (1, 1)
    assert cache.save(predictor.predict(["a", "b"], ["first"]).unsaved) is None
    assert len(table.rows) == 5


WRONG_SHAPES = {
    "auto": [(Kind.PREDICTION, 16), (Kind.PREDICTION, 20), (Kind.AUTO, 16), (Kind.AUTO, 20), (Kind.AUTO, 13)],
    "first": [(Kind.PREDICTION, 12), (Kind.AUTO, 17), (Kind.EMBEDDING, 32), (Kind.PREDICTION, 0)],
    "embedding": [(Kind.EMBEDDING, 12), (Kind.PREDICTION, 32), (Kind.EMBEDDING, 0)],
}


@pytest.mark.parametrize(
    ("name", "kind", "size"), [(name, *shape) for name, shapes in WRONG_SHAPES.items() for shape in shapes]
)
def test_wrong_shapes_are_corrupt(name: str, kind: Kind, size: int) -> None:
    """A value with a right checksum that is not of its key's kind and size is a counted miss, and no 500.

    One that is, but names an unknown source of `auto`, is as wrong.
    """
    table, time = FakeTable([]), FakeTime()
    scope = CacheScope(tiny_manifest().version, tiny_encoder_manifest().version, SHAPES)
    key = scope.key(name, "a text")
    value = encode(key, kind, b"\x07" * size)
    table.rows[key.hex()] = to_row(key, Item(value, 2_000_000_000))
    head = "first" if name == "embedding" else name
    predictor = tiny_predictor(cache=two_levels(table, time, Policy.ALWAYS, 0))
    reply = post(
        Api(served(predictor), Settings(log_level="off"), StartMark()), {"text": "a text", "heads": [head]}
    )
    usage = msgspec.json.decode(reply.body)["usage"]["cache"]
    assert (reply.status, usage["corrupt"], usage["miss"]) == (200, 1, 1)
    plain = tiny_predictor(cache_bytes=0).predict(["a text"], [head])
    again = predictor.predict(["a text"], [head])  # the wrong value was replaced
    assert (again.usage.cache.l2, again.answers) == (1, plain.answers)
