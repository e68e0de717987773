"""Mixes of requests: headlines, posts, and both, one text for each request."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from bench.data.mixes import Corpus

HEADLINES, POSTS, BOTH = "headlines", "posts", "both"
MIXES = (HEADLINES, POSTS, BOTH)
_POSTS_OF_BOTH = 0.2


@dataclass(frozen=True)
class TextMix:
    """Texts of one kind, from the beginning again when there are no more."""

    name: str
    texts: Sequence[str]

    def take(self, count: int) -> list[str]:
        """The first `count` texts."""
        return [self.texts[number % len(self.texts)] for number in range(count)]


def make_mixes(corpus: Corpus, seed: int) -> list[TextMix]:
    """The three mixes. Of both, every fifth text is a post, on average."""
    chance = random.Random(seed)
    posts, headlines = iter(corpus.posts), iter(corpus.headlines)
    both: list[str] = []
    while len(both) < len(corpus.posts):
        both.append(next(posts if chance.random() < _POSTS_OF_BOTH else headlines))
    return [TextMix(HEADLINES, corpus.headlines), TextMix(POSTS, corpus.posts), TextMix(BOTH, both)]
