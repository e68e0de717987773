"""Manifests as text."""

import json

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from local.deploy.homes.notes import Noted, as_json, as_yaml, plain

texts = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"])) | st.sampled_from(
    ["no", "Off", "1e3", "0x1"]
)
trees = st.recursive(
    st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(texts, trees, min_size=1, max_size=3))
def test_yaml_says_what_was_given(tree: dict[str, object]) -> None:
    """A reader of YAML 1.1 reads the same values, texts as texts."""
    assert yaml.safe_load(as_yaml([tree])) == tree


def test_notes_are_comments_above_their_keys() -> None:
    """At the column of the key, in mappings and in items of lists; JSON has none."""
    tree = {"a": {"b": Noted(1, "why\nso")}, "c": [{"d": 2, "e": Noted([3], "list")}]}
    text = as_yaml([tree])
    assert "a:\n  # why\n  # so\n  b: 1\n" in text
    assert "  - d: 2\n    # list\n    e:\n      - 3\n" in text
    assert json.loads(as_json(tree)) == plain(tree) == yaml.safe_load(text)


def test_documents_follow_one_another() -> None:
    """As `kubectl apply -f -` reads them."""
    assert list(yaml.safe_load_all(as_yaml([{"a": 1}, {"b": 2}]))) == [{"a": 1}, {"b": 2}]
