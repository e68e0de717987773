"""The texts that are sent: 20 Newsgroups where it can be had, else texts of our own of the same lengths."""

import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

from coldframe_bench.data.newsgroups import TextsMissing, is_available, read_newsgroups

OWN = "own texts with the lengths of 20 Newsgroups"
NEWSGROUPS = "20 Newsgroups, test split, stripped"

_SENTENCES = Path(__file__).with_name("sentences.txt")

TOPICS = (
    "alt.atheism", "comp.graphics", "comp.os.ms-windows.misc", "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware", "comp.windows.x", "misc.forsale", "rec.autos", "rec.motorcycles",
    "rec.sport.baseball", "rec.sport.hockey", "sci.crypt", "sci.electronics", "sci.med", "sci.space",
    "soc.religion.christian", "talk.politics.guns", "talk.politics.mideast", "talk.politics.misc",
    "talk.religion.misc",
)  # fmt: skip
"""Label of each block of sentences, in order."""

# Words per document of the stripped test split of 20 Newsgroups: a share of the documents, and their largest
# length. The 3 % that are empty are left out.
_WORDS = {
    0.0: 1, 0.05: 7, 0.1: 17, 0.2: 32, 0.3: 47, 0.4: 63, 0.5: 82, 0.6: 106, 0.7: 140, 0.8: 197, 0.9: 324,
    0.95: 543, 0.97: 747, 0.98: 1022, 0.99: 1661, 0.995: 2702, 0.998: 5430, 1.0: 9507,
}  # fmt: skip

# Share of our own texts that mix sentences of all topics. The estimator is sure of nine in ten texts
# about one topic. With this share of mixed texts it is sure of as many as in the data set, 0.62, so
# that both need the encoder equally often.
_MIXED = 0.6


@dataclass(frozen=True)
class TextMix:
    """Texts and where they are from."""

    source: str
    texts: list[str]


@dataclass(frozen=True)
class Labelled:
    """Texts with their right label, in random order, and where they are from."""

    source: str
    labels: dict[str, str]

    def grouped(self, size: int) -> list[list[str]]:
        """All texts, `size` a request; a rest that is smaller is left out."""
        texts = list(self.labels)
        return [texts[start : start + size] for start in range(0, len(texts) - size + 1, size)]


def load_labelled(seed: int, own: int = 2000) -> Labelled:
    """Posts of the data set with their groups, where COLDFRAME_DATA leads to it, else texts of our own.

    own: how many of our own. Each is made of sentences of one topic, and of some of any topic.
    """
    source = random.Random(seed)
    if is_available():
        read = read_newsgroups()
        pairs = [(post, label) for post, label in zip(read.posts, read.labels, strict=True) if post.strip()]
        return Labelled(NEWSGROUPS, dict(source.sample(pairs, len(pairs))))
    topics = [block.splitlines() for block in _SENTENCES.read_text().strip().split("\n\n")]
    pairs = []
    for number in range(own):
        topic = number % len(topics)
        pool = [*topics[topic], *source.sample(sentences(), 4)]
        pairs.append((make_text(pool, _length(source), source), TOPICS[topic]))
    return Labelled(OWN, dict(source.sample(pairs, len(pairs))))


def sentences() -> list[str]:
    """Our own sentences, one by one."""
    return [line for line in _SENTENCES.read_text().splitlines() if line]


def load_texts(count: int, seed: int, file: Path | None = None) -> TextMix:
    """`count` texts in random order.

    file: a JSON string or {"text": …} per line; without it the data set, or else our own.
    """
    if file is not None:
        mix = TextMix(file.name, _read_file(file))
    elif is_available():
        mix = TextMix(NEWSGROUPS, read_newsgroups().posts)
    else:
        return TextMix(OWN, _own_texts(count, random.Random(seed)))
    usable = [text for text in mix.texts if text.strip()]
    if not usable:
        raise TextsMissing(f"{mix.source} has no texts. Expected at least one that is not empty.")
    chosen = random.Random(seed).sample(usable, min(count, len(usable)))
    return TextMix(mix.source, chosen)


def with_duplicates(
    texts: Sequence[str], count: int, duplicate_rate: float, exponent: float, seed: int
) -> list[str]:
    """`count` texts in the order to be sent, of which a share of `duplicate_rate` came before.

    What is repeated is drawn from those sent so far, the earlier the more popular: rank r has
    weight r^-exponent (Zipf's law; Breslau et al. 1999 found 0.64 to 0.83 for web requests).
    """
    source = random.Random(seed)
    fresh = list(texts)
    sent: list[str] = []
    popular: list[str] = []
    weights = list(accumulate(rank**-exponent for rank in range(1, len(fresh) + 1)))
    for _ in range(count):
        again = popular and (source.random() < duplicate_rate or len(popular) == len(fresh))
        if not again:
            popular.append(fresh[len(popular)])
        drawn = source.choices(popular, cum_weights=weights[: len(popular)])[0] if again else popular[-1]
        sent.append(drawn)
    return sent


def _own_texts(count: int, source: random.Random) -> list[str]:
    """Sentences after one another until a text is as long as a document of the data set."""
    topics = [block.splitlines() for block in _SENTENCES.read_text().strip().split("\n\n")]
    everything = sentences()

    def pool() -> Sequence[str]:
        return everything if source.random() < _MIXED else source.choice(topics)

    return [make_text(pool(), _length(source), source) for _ in range(count)]


def _length(source: random.Random) -> int:
    """Words of one text, drawn from _WORDS; evenly in the logarithm between two of its shares."""
    place = source.random()
    (below, low), (above, high) = next(pair for pair in pairwise(_WORDS.items()) if place < pair[1][0])
    return round(low * math.pow(high / low, (place - below) / (above - below)))


def make_text(pool: Sequence[str], words: int, source: random.Random) -> str:
    """Sentences of the pool by chance, cut at this number of words."""
    chosen: list[str] = []
    while len(chosen) < words:
        chosen += source.choice(pool).split()
    return " ".join(chosen[:words])


def _read_file(file: Path) -> list[str]:
    lines = [json.loads(line) for line in file.read_text().splitlines() if line.strip()]
    return [line["text"] if isinstance(line, dict) else str(line) for line in lines]
