"""Options of a run, and its mixes of requests: headlines, posts, and both, one text for each request."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coldframe_bench.data.mixes import Corpus
from coldframe_bench.targets.environments import ENVIRONMENTS

HEADLINES, POSTS, BOTH = "headlines", "posts", "both"
MIXES = (HEADLINES, POSTS, BOTH)
_POSTS_OF_BOTH = 0.2


@dataclass(frozen=True)
class ServeOptions:
    """workers: passes at a time, each of one thread; 0: one for each core. seconds: of each rate.

    rounds: in which every policy has its turn at every rate. peers: whether servers are compared over HTTP,
    too; only: those of these names.
    """

    model_dir: Path
    out: Path
    seed: int
    workers: int = 0
    seconds: float = 6.0
    rounds: int = 1
    deadline_ms: float = 500.0
    peers: bool = False
    only: tuple[str, ...] = ()
    environments: Path = ENVIRONMENTS


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
