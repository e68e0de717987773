"""Columns of texts: an answer per row, none for no text, each text asked once, the numbers `Predictor`'s."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.columns import embed_column, predict_column
from coldframe.errors import Invalid
from coldframe.vectors import to_floats
from tests.conftest import TinyEncoder, tiny_manifest, tiny_predictor

HEADS = ["auto", "first"]
COLUMN = st.lists(
    st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=12)), max_size=60
)


@given(COLUMN)
def test_every_row_is_what_predict_says_of_its_text(texts: list[str | None]) -> None:
    """The answers of a column are those of its texts one by one, in the order of the rows."""
    predictor = tiny_predictor(cache_bytes=0)
    found = predict_column(predictor, texts, HEADS)
    vectors = embed_column(predictor, texts)
    for head in HEADS:
        assert len(found[head]) == len(texts)
    for row, text in enumerate(texts):
        if text is None:
            assert [found[head][row] for head in HEADS] == [None, None]
            assert vectors[row] is None
            continue
        alone = predictor.predict([text], HEADS)
        for head in HEADS:
            answer = found[head][row]
            assert answer is not None
            assert [*answer.scores, answer.out_of_distribution] == to_floats(alone.answers[head][0])
            assert answer.probability == max(answer.scores)
            assert answer.label == tiny_manifest().labels[answer.scores.index(answer.probability)]
        assert found["auto"][row].source is alone.sources[0]  # type: ignore[union-attr]
        assert vectors[row] == predictor.embed([text]).vectors[0]


def test_each_text_is_asked_once() -> None:
    """Equal texts are tokenized once, whatever the number of rows that hold them."""
    encoder = TinyEncoder()
    predict_column(tiny_predictor(encoder, cache_bytes=0), ["a", None, "b", "a"] * 3000, ["auto"])
    assert sorted(encoder.tokenized) == ["a", "b"]


def test_abstention_is_no_label() -> None:
    """Where a head abstains the label is None, and the probability stays."""
    predictor = tiny_predictor(cache_bytes=0)
    predictor.min_probability["first"] = 1.1
    (answer,) = predict_column(predictor, ["abc"], ["first"])["first"]
    assert answer is not None
    assert answer.label is None
    assert 0 < answer.probability <= 1


def test_unknown_head() -> None:
    """A head that the model lacks is refused with a list of those it has."""
    with pytest.raises(
        Invalid, match=r'"no-such-head" is not a head of this model\. Request one of: auto, first, second'
    ):
        tiny_predictor().check_heads(["auto", "no-such-head"])
