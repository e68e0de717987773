"""The measurement of passes in a batch: what is compared, and that it is the same work."""

import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from coldframe.model.bundle import load_encoder_manifest
from coldframe.model.encoder import Encoder
from coldframe.model.tokenizer import TextWindows
from coldframe_bench.benchmarks.passes import STRATEGIES, Mix, fixed_batches, make_mixes, measure
from coldframe_bench.data.mixes import Corpus, load_corpus
from tests.conftest import ENCODER_NAME


@given(st.lists(st.integers(1, 40), max_size=100), st.integers(1, 64))
def test_fixed_sizes(lengths: list[int], size: int) -> None:
    """Every row is in one batch, with rows of its length; only the last batch of a length is smaller."""
    batches = fixed_batches(lengths, size)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    sizes: dict[int, list[int]] = {length: [] for length in lengths}
    for batch in batches:
        (length,) = {lengths[row] for row in batch}
        sizes[length].append(len(batch))
    for found in sizes.values():
        assert set(found[:-1]) <= {size}
        assert found[-1] <= size


def test_every_strategy_is_timed(bundle: Path, encoder_dir: Path) -> None:
    """Each strategy gets a time for each request."""
    encoder = Encoder(encoder_dir, load_encoder_manifest(bundle, ENCODER_NAME).facts, threads=1)
    mix = Mix("few", [[[101, 2000, 102]] * 3 + [[101, 102]], [[101, 102]]])
    times = measure(encoder, mix, 6, random.Random(0))
    assert {name: len(taken) for name, taken in times.items()} == dict.fromkeys(STRATEGIES, 2)


def test_mixes(bundle: Path, encoder_dir: Path) -> None:
    """Without the data set there are texts of our own; headlines are short, and one mix has a long text."""
    corpus = load_corpus(seed=0)
    assert corpus == load_corpus(seed=0)
    windows = TextWindows(encoder_dir, load_encoder_manifest(bundle, ENCODER_NAME).facts)
    few = Corpus(corpus.source, corpus.posts[:60], corpus.headlines[:200])
    posts, headlines, many, one_long = make_mixes(few, windows, requests=4)
    assert all(len(row) <= 32 for request in headlines.requests + many.requests for row in request)
    assert max(len(row) for request in one_long.requests for row in request) > 32
    assert [len(mix.requests) for mix in (posts, headlines, many, one_long)] == [4, 4, 2, 4]
