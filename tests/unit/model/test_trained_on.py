"""A model says which texts it was trained on, without a text, and is compared on others."""

from pathlib import Path

import numpy as np
import pytest

from coldframe_training.training.trained_on import NotComparable, find_unseen, opponent_of, write_digests
from coldframe_training.training_data.samples import Samples

TEXTS = [f"ticket {number}" for number in range(60)]


def rows(texts: list[str]) -> Samples:
    """Rows to test with."""
    return Samples({"text": texts}, np.zeros(len(texts), dtype=np.int64))


def test_unseen_texts(tmp_path: Path) -> None:
    """Texts that were trained on are known again, in whatever form white space is, and no others."""
    write_digests(TEXTS[:40], tmp_path)
    assert find_unseen([f" {text}\n" for text in TEXTS], tmp_path) == list(range(40, 60))


def test_no_text_is_kept(tmp_path: Path) -> None:
    """Six bytes of each distinct text are kept, in an order that says nothing about the table."""
    other = tmp_path / "other"
    other.mkdir()
    write_digests(TEXTS, tmp_path)
    write_digests([*reversed(TEXTS), TEXTS[3]], other)
    first, again = (folder / "report.digests" for folder in (tmp_path, other))
    assert len(first.read_bytes()) == 6 * len(TEXTS)
    assert first.read_bytes() == again.read_bytes()
    assert b"ticket" not in first.read_bytes()


def test_rows_of_the_other_training_are_left_out(tmp_path: Path) -> None:
    """Another model is asked about the test rows that it was not trained on; the others are counted."""
    write_digests(TEXTS[:25], tmp_path)
    opponent = opponent_of(tmp_path, rows(TEXTS), has_own_test=False)
    assert (opponent.rows, opponent.left_out) == (list(range(25, 60)), 25)


@pytest.mark.parametrize("has_own_test", [False, True])
def test_too_few_rows_are_refused(tmp_path: Path, has_own_test: bool) -> None:
    """Fewer than twenty rows that are new to both models are no comparison."""
    write_digests(TEXTS[:41], tmp_path)
    with pytest.raises(NotComparable, match=r"not trained on 19 of the 60 rows.*--test FILE"):
        opponent_of(tmp_path, rows(TEXTS), has_own_test)


def test_model_that_does_not_say(tmp_path: Path) -> None:
    """A model without digests is compared on a test file of its own, and on nothing else."""
    opponent = opponent_of(tmp_path, rows(TEXTS), has_own_test=True)
    assert (len(opponent.rows), opponent.left_out) == (60, None)
    with pytest.raises(NotComparable, match="does not say which rows it was trained on"):
        opponent_of(tmp_path, rows(TEXTS), has_own_test=False)
