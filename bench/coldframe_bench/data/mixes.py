"""Mixes of texts that arrive together: long posts, headlines, one long text among many short ones."""

import random
from dataclasses import dataclass

from coldframe_bench.data.newsgroups import is_available, read_newsgroups
from coldframe_bench.data.texts import make_text, sentences

_HEADLINE_WORDS = (2, 14)
_POST_WORDS = (8, 1000)


@dataclass(frozen=True)
class Corpus:
    """Where the texts are from, long ones and short ones, in random order."""

    source: str
    posts: list[str]
    headlines: list[str]


def load_corpus(seed: int) -> Corpus:
    """Posts and subject lines of 20 Newsgroups where COLDFRAME_DATA leads to it, else texts of our own."""
    source = random.Random(seed)
    if is_available():
        read = read_newsgroups()
        posts, headlines = (source.sample(texts, len(texts)) for texts in (read.posts, read.subjects))
        return Corpus("20 Newsgroups, test split: stripped posts and subject lines", posts, headlines)
    own = sentences()
    posts = [_own_text(own, _POST_WORDS, source) for _ in range(2000)]
    headlines = [_own_text(own, _HEADLINE_WORDS, source) for _ in range(4000)]
    return Corpus("sentences of our own", posts, headlines)


def _own_text(own: list[str], words: tuple[int, int], source: random.Random) -> str:
    """Sentences, cut where a length is reached that is drawn evenly in its logarithm."""
    low, high = words
    return make_text(own, round(low * (high / low) ** source.random()), source)
