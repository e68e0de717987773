"""The real encoder: rows on their own, windows, and texts of any kind."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe.config import Settings
from coldframe.errors import BundleCorrupt, BundleMissing, EncoderDrift
from coldframe.model.bundle import EncoderFacts, load_encoder_manifest, load_golden
from coldframe.model.encoder import Encoder, check_golden, pool_windows
from coldframe.model.tokenizer import TextWindows, Window
from coldframe.pipeline.models import load_predictor
from coldframe.pipeline.predictor import Predictor
from coldframe.vectors import Vector, cosine, to_floats
from coldframe_training.embeddings.matrices import to_matrix, to_vectors
from tests.conftest import ENCODER_NAME, EXAMPLE
from tests.support.example import BASEBALL, CRYPTOGRAPHY, MOTORCYCLES, SPACE

WORDS = [
    "the",
    "shuttle",
    "reached",
    "orbit",
    "and",
    "a",
    "goalie",
    "saved",
    "forty",
    "shots",
    "in",
    "overtime",
]


@pytest.fixture(scope="module")
def facts(bundle: Path) -> EncoderFacts:
    """What the manifest says of the served encoder."""
    return load_encoder_manifest(bundle, ENCODER_NAME).facts


@pytest.fixture(scope="module")
def encoder(encoder_dir: Path, facts: EncoderFacts) -> Encoder:
    """The served encoder."""
    return Encoder(encoder_dir, facts, threads=1)


def test_golden_vectors(encoder_dir: Path, facts: EncoderFacts, encoder: Encoder) -> None:
    """Every golden text is within the stated distance of the original fp32 weights, 0.985 on average."""
    windows = TextWindows(encoder_dir, facts)
    cosines = []
    for vector in load_golden(encoder_dir).vectors:
        row = windows.cut([vector.text])[0][:1]
        cosines.append(cosine(encoder.encode(row)[0], vector.embedding))
    assert min(cosines) >= load_golden(encoder_dir).min_cosine
    assert np.mean(cosines) >= 0.985


@pytest.mark.parametrize("tokens", [1, 2, 7, 16, 61, 128, 256])
def test_rows_are_on_their_own(encoder: Encoder, tokens: int) -> None:
    """A row's embedding is the same, to the bit, alone and among others, and has length 1."""
    rows = np.random.default_rng(tokens).integers(1000, 29_000, size=(9, tokens)).tolist()
    together = encoder.encode(rows)
    np.testing.assert_allclose(np.linalg.norm(to_matrix(together), axis=1), 1, atol=1e-3)
    for row, ids in enumerate(rows):
        assert encoder.encode([ids]) == [together[row]]


def test_text_is_on_its_own(predictor: Predictor) -> None:
    """A text gets the same probabilities, to the bit, alone and among texts of all lengths."""
    texts = [" ".join(WORDS * n) for n in (0, 1, 2, 30, 100)] + ["orbit", "goalie"]
    heads = list(predictor.manifest.heads)
    together = predictor.predict(texts, heads, use_cache=False)
    for index, text in enumerate(texts):
        alone = predictor.predict([text], heads, use_cache=False)
        for head in heads:
            assert alone.answers[head][0] == together.answers[head][index]


def test_windows_cover_the_text(encoder_dir: Path) -> None:
    """Windows follow each other without gap or overlap, each with [CLS] and [SEP], none too long."""
    facts = EncoderFacts(dimension=384, max_tokens=16, max_windows=1000)
    text = " ".join(WORDS * 20)
    (windows,) = TextWindows(encoder_dir, facts).cut([text])
    whole = TextWindows(encoder_dir, msgspec.structs.replace(facts, max_tokens=100_000)).cut([text])[0][0]
    assert [token for window in windows for token in window[1:-1]] == whole[1:-1]
    assert {(window[0], window[-1]) for window in windows} == {(101, 102)}
    assert [len(window) for window in windows[:-1]] == [16] * (len(windows) - 1)


def test_windows_are_bounded(encoder_dir: Path) -> None:
    """No text, however long, has more windows than it may, and the empty text has one."""
    facts = EncoderFacts(dimension=384, max_tokens=16, max_windows=3)
    assert [len(windows) for windows in TextWindows(encoder_dir, facts).cut(["", "a " * 100_000])] == [1, 3]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.sampled_from([*WORDS, "pneumonoultramicroscopic" * 4, "日本語", "x" * 150, "é!?"]), max_size=80
    )
)
def test_only_the_beginning_is_tokenized(encoder_dir: Path, words: list[str]) -> None:
    """Cutting a text's characters before tokenization changes no window."""
    text = " ".join(words)
    few = TextWindows(encoder_dir, EncoderFacts(dimension=384, max_tokens=10, max_windows=2))
    many = TextWindows(encoder_dir, EncoderFacts(dimension=384, max_tokens=10, max_windows=10_000))
    assert few.cut([text])[0] == many.cut([text])[0][:2]


def test_pooling_weighs_by_tokens() -> None:
    """Windows are averaged by their tokens, at length 1; a lone window is untouched."""
    windows = to_vectors(np.eye(3))
    pooled = pool_windows(windows, tokens=[3, 1, 5], counts=[2, 1])
    np.testing.assert_allclose(to_floats(pooled[0]), np.array([3, 1, 0]) / np.sqrt(10), atol=1e-6)
    assert pooled[1] == windows[2]


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=300))
def test_any_text_has_an_answer(predictor: Predictor, text: str) -> None:
    """Any Unicode text gets finite probabilities, and a score from 0 to 1."""
    head = predictor.manifest.default_head
    *row, score = to_floats(predictor.predict([text], [head]).answers[head][0])
    assert 0 <= score <= 1
    assert np.isfinite(row).all()
    assert sum(row) == pytest.approx(1, abs=1e-5)


def test_topics(predictor: Predictor) -> None:
    """Plain sentences get their topic from every head of the example."""
    texts = {
        "The shuttle reached orbit": SPACE,
        "He struck out nine batters and hit a home run in the ninth inning": BASEBALL,
        "My bike's engine stalls when I open the throttle at full lean: new carburetors?": MOTORCYCLES,
        "Clipper chip key escrow means the government can decrypt any message": CRYPTOGRAPHY,
    }
    heads = list(predictor.manifest.heads)
    prediction = predictor.predict(list(texts), heads)
    for head in heads:
        labels = [
            predictor.manifest.labels[i] for i in to_matrix(prediction.answers[head])[:, :-1].argmax(axis=1)
        ]
        assert labels == list(texts.values())


def test_fewer_windows_is_another_version(bundle: Path, predictor: Predictor) -> None:
    """Serving with another number of windows changes the version that answers carry."""
    other = load_predictor(Settings(model_dir=bundle, max_windows=1))
    assert other.manifest.version != predictor.manifest.version
    assert other.manifest.encoder.version == other.encoder.version != predictor.encoder.version
    assert other.predict(["orbit " * 2000], ["logreg"]).usage.windows == 1


def test_no_bundle(tmp_path: Path) -> None:
    """Without a bundle the error names the folder and what to do."""
    with pytest.raises(BundleMissing, match=rf"{tmp_path} has no model\. Run `coldframe build`"):
        load_predictor(Settings(model_dir=tmp_path))
    with pytest.raises(BundleMissing, match=r"has no model\. Run `coldframe build`"):
        load_predictor(Settings(model_dir=tmp_path, models=EXAMPLE))


def test_unreadable_encoder(tmp_path: Path, facts: EncoderFacts) -> None:
    """An encoder that cannot be read is named."""
    (tmp_path / "encoder.ort").write_bytes(b"broken")
    with pytest.raises(BundleCorrupt, match=r"encoder\.ort"):
        Encoder(tmp_path, facts, threads=1)


class Mistaken:
    """An encoder whose first answers are wrong; then it is the real one."""

    def __init__(self, encoder: Encoder, mistakes: int, wrong: float) -> None:
        self.dimension, self._encoder, self._mistakes, self._wrong = 384, encoder, mistakes, wrong

    def encode(self, rows: Sequence[Window]) -> list[Vector]:
        self._mistakes -= 1
        embeddings = self._encoder.encode(rows)
        return to_vectors(to_matrix(embeddings) * self._wrong) if self._mistakes >= 0 else embeddings


@pytest.mark.parametrize("wrong", [0.1, float("nan")])
def test_drift_is_looked_at_twice(
    encoder_dir: Path, facts: EncoderFacts, encoder: Encoder, wrong: float
) -> None:
    """One wrong look at the golden vectors condemns no encoder, two in a row do; NaN is wrong anywhere."""
    windows = TextWindows(encoder_dir, facts)
    golden = load_golden(encoder_dir)
    for at_most in (1, 2):
        check_golden(Mistaken(encoder, at_most, wrong), windows, golden, at_most)
        with pytest.raises(EncoderDrift):
            check_golden(Mistaken(encoder, 2 * at_most, wrong), windows, golden, at_most)
    one = msgspec.structs.replace(golden, vectors=golden.vectors[:1])
    assert check_golden(encoder, windows, one) == check_golden(encoder, windows, golden, 1)
