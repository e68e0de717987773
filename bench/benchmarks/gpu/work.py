"""The work of a run: rows of texts, and passes of them in the orders that are compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.data.texts import load_texts
from coldframe.model.tokenizer import TextWindows, Window
from coldframe.text import normalise

ARRIVAL, SORTED = "arrival", "sorted"
Pass = list[Window]


@dataclass(frozen=True)
class Work:
    """Texts, and their windows one after another as the texts arrive."""

    source: str
    texts: list[str]
    rows: list[Window]

    @property
    def tokens(self) -> int:
        return sum(map(len, self.rows))


def load_work(windows: TextWindows, count: int, seed: int, file: Path | None) -> Work:
    """`count` texts, again from the first one where there are fewer. file: as `load_texts` reads it."""
    mix = load_texts(count, seed, file)
    texts = [normalise(mix.texts[i % len(mix.texts)]) for i in range(count)]
    return Work(mix.source, texts, [row for text in windows.cut(texts) for row in text])


def make_passes(rows: Sequence[Window], order: str, tokens: int) -> list[Pass]:
    """Passes of about `tokens` tokens each, padding not counted.

    order: ARRIVAL, as a scheduler takes rows of many requests; SORTED by length, as inside one request.
    """
    ordered = sorted(rows, key=len) if order == SORTED else rows
    passes: list[Pass] = [[]]
    filled = 0
    for row in ordered:
        if passes[-1] and filled + len(row) > tokens:
            passes.append([])
            filled = 0
        passes[-1].append(row)
        filled += len(row)
    return passes
