"""How strange a text is, as a share of the validation rows."""

import struct
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.model.bundle import EstimatorFacts, load_manifest, load_pair
from coldframe.model.estimator import Estimator, strangeness_of
from coldframe.model.files import ESTIMATOR, encoder_folder, model_folder
from coldframe.model.heads import share_more_usual
from coldframe.model.tokenizer import TextWindows, content_tokens
from tests.conftest import EXAMPLE

values = st.floats(-9, 9, width=32)
usual_values = st.lists(values, min_size=1, max_size=50).map(sorted)


@given(values, usual_values)
def test_share_of_rows(strangeness: float, usual: list[float]) -> None:
    """The score is the share of the rows whose strangeness is lower."""
    assert share_more_usual(strangeness, usual) == sum(value < strangeness for value in usual) / len(usual)


@given(values, values, usual_values)
def test_stranger_texts_have_no_lower_score(first: float, second: float, usual: list[float]) -> None:
    """The order of strangeness is the order of scores, which stay within 0 and 1."""
    low, high = (share_more_usual(value, usual) for value in sorted((first, second)))
    assert 0 <= low <= high <= 1


@given(st.lists(values, min_size=2, max_size=9))
def test_no_evidence_is_the_strangest(evidence: list[float]) -> None:
    """A text of which the estimator knows nothing is the strangest there is."""
    assert strangeness_of(evidence) <= strangeness_of([0.0] * len(evidence)) == 0


@pytest.mark.parametrize("labels", [2, 1000])
def test_by_tokens(tmp_path: Path, labels: int) -> None:
    """Tokens that say nothing make a text stranger than tokens that speak for a label."""
    weights = [100 if label == 0 else -1 for label in range(labels)] + [0] * labels
    (tmp_path / ESTIMATOR).write_bytes(struct.pack("<2f", 1, 1) + struct.pack(f"<{2 * labels}h", *weights))
    facts = EstimatorFacts(
        vocabulary=2,
        scales=[0.01] * labels,
        bias=[0.0] * labels,
        temperature=1.0,
        threshold=0.5,
        partner="mlp",
    )
    old = Estimator(tmp_path, facts)
    speaking, silent = strangeness_of(old.evidence([0])), strangeness_of(old.evidence([1]))
    estimator = Estimator(tmp_path, msgspec.structs.replace(facts, usual=[speaking, speaking / 2]))
    scores = [estimator.out_of_distribution(estimator.evidence(ids)) for ids in ([0], [0, 1], [1], [])]
    assert scores == [0, 0.5, 1, 1]
    assert silent == 0


def test_evidence_is_what_probabilities_are_made_of(bundle: Path) -> None:
    """Evidence and then probabilities give the bits of a prediction in one step."""
    manifest = load_manifest(bundle, EXAMPLE)
    estimator = Estimator(model_folder(bundle, EXAMPLE), manifest.estimator)
    ids = list(range(2000, 2100, 7))
    assert estimator.probabilities(estimator.evidence(ids)) == estimator.predict(ids)


def test_served_model_finds_posts_usual(bundle: Path) -> None:
    """By its tokens the served model finds a post more usual than a line of nonsense."""
    manifest, encoder = load_pair(bundle, EXAMPLE)
    estimator = Estimator(model_folder(bundle, EXAMPLE), manifest.estimator)
    cutter = TextWindows(encoder_folder(bundle, encoder.name), encoder.facts)
    texts = ["The goalie stopped every shot and the team won the playoff game", "flurb wizzle grommid"]
    post, nonsense = (
        estimator.out_of_distribution(estimator.evidence(content_tokens(windows)))
        for windows in cutter.cut(texts)
    )
    assert post < 0.8 < nonsense
