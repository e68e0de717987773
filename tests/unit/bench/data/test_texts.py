"""The texts that are sent."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.config import Settings
from coldframe.pipeline.models import load_predictor
from coldframe_bench.data.newsgroups import TextsMissing
from coldframe_bench.data.texts import OWN, load_texts, with_duplicates


@pytest.fixture(autouse=True)
def _no_data_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLDFRAME_DATA", raising=False)


def test_own_texts_have_the_lengths_of_the_data_set() -> None:
    """Median and mean words of our own texts are those of 20 Newsgroups, stripped test split: 82 and 175."""
    mix = load_texts(4000, seed=0)
    words = sorted(len(text.split()) for text in mix.texts)
    assert mix.source == OWN
    assert words[len(words) // 2] == pytest.approx(82, rel=0.1)
    assert sum(words) / len(words) == pytest.approx(175, rel=0.3)


def test_own_texts_need_the_encoder_as_often_as_the_data_set(bundle: Path) -> None:
    """The estimator is sure of 0.62 of the data set's texts: of about as many of ours."""
    predictor = load_predictor(Settings(model_dir=bundle))
    texts = load_texts(400, seed=0).texts
    estimated = predictor.predict(texts, ["auto"]).usage.estimated
    assert estimated / len(texts) == pytest.approx(0.62, abs=0.08)


def test_seed_decides() -> None:
    """The same seed gives the same texts, another one others."""
    assert load_texts(5, 1) == load_texts(5, 1)
    assert load_texts(5, 1) != load_texts(5, 2)


def test_file_of_texts(tmp_path: Path) -> None:
    """A file has a string or an object per line; empty texts are left out."""
    path = tmp_path / "texts.jsonl"
    path.write_text('"one"\n{"text": "two"}\n""\n')
    assert sorted(load_texts(10, 0, path).texts) == ["one", "two"]


def test_file_without_texts(tmp_path: Path) -> None:
    """A file that has no text is a named error."""
    path = tmp_path / "texts.jsonl"
    path.write_text('""\n')
    with pytest.raises(TextsMissing):
        load_texts(10, 0, path)


@given(st.floats(0, 1), st.integers(1, 200), st.integers(0, 1000))
def test_nothing_is_sent_twice_by_accident(rate: float, count: int, seed: int) -> None:
    """Without duplicates every text is fresh; with them, as many are sent as asked for."""
    texts = [str(number) for number in range(count)]
    assert with_duplicates(texts, count, 0.0, 0.8, seed) == texts
    sent = with_duplicates(texts, count, rate, 0.8, seed)
    assert len(sent) == count
    assert set(sent) <= set(texts)


def test_share_and_popularity_of_duplicates() -> None:
    """About the share asked for came before, and the first texts came more often than later ones."""
    texts = [str(number) for number in range(4000)]
    sent = with_duplicates(texts, 4000, 0.5, 0.8, seed=3)
    assert len(set(sent)) == pytest.approx(2000, rel=0.1)
    assert sent.count("0") > 10 * sent.count("1500")
