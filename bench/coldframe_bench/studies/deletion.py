"""Deletion test of explanations: the named words against as many random words of the same text.

    COLDFRAME_DATA=FOLDER PYTHONPATH=bench:local:layers/model:layers/shared/python .venv-build/bin/python -m \
        coldframe_bench.studies.deletion

The texts are test documents of 20 Newsgroups, or those of `--table`. Their words are removed, and the model
answers again. Source: erasure, Li, Monroe & Jurafsky 2016; comprehensiveness, DeYoung et al. 2020.
"""

import argparse
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from coldframe.config import Settings
from coldframe.model.files import AUTO
from coldframe.model.tokenizer import content_tokens, normalise
from coldframe.pipeline.explaining import explain_answers
from coldframe.pipeline.models import load_models
from coldframe.pipeline.predictor import Predictor
from coldframe.pipeline.words import Span, WordsUnknown, words_of
from coldframe.progress import Progress
from coldframe.schemas import DecidingWord, HeadAnswer, Score, TextAnswer
from coldframe.timing import NO_DEADLINE
from coldframe.vectors import to_floats
from coldframe_training.training_data.table import Columns, read_table

_DRAWS = 10  # of random words
_LEAST_WORDS = 8
Places = list[tuple[int, int]]


class Deletion(NamedTuple):
    """Probabilities of a text's label: of the whole text, without the named words, and without random ones.

    by_chance: the mean over draws. method: of the explanation.
    """

    whole: float
    without_named: float
    by_chance: float
    method: str

    @property
    def is_better(self) -> bool:
        """Whether the named words took more than random ones."""
        return self.without_named < self.by_chance


def delete_words(
    predictor: Predictor, text: str, head: str, named_spans: int, chance: random.Random
) -> Deletion | None:
    """The deletion test of one text; None where it has no explanation, or too few words.

    named_spans: most named words, or groups of adjacent words in long texts, that are removed.
    """
    prediction = predictor.predict([text], [head])
    *scores, _ = to_floats(prediction.answers[head][0])
    label = max(range(len(scores)), key=scores.__getitem__)
    top = [Score(predictor.manifest.labels[label], scores[label])]
    answer = HeadAnswer(top[0].label, top[0].probability, top, 0.0)
    if head == AUTO:
        answer.by = prediction.sources[0].by
    explain_answers(predictor, [text], [TextAnswer(0, {head: answer})], prediction.usage, NO_DEADLINE)
    words = words_in(predictor, text)
    explanation = answer.explanation
    if not explanation or len(words) < _LEAST_WORDS or not explanation.words:
        return None
    places = named_places(explanation.words[:named_spans], words)
    variants = [without(text, chance.sample(words, len(places))) for _ in range(_DRAWS)]
    values = [_probability(predictor, other, head, label) for other in (without(text, places), *variants)]
    return Deletion(scores[label], values[0], math.fsum(values[1:]) / _DRAWS, explanation.method)


def words_in(predictor: Predictor, text: str) -> Places:
    """Places of a text's words; none where tokens cross words."""
    content = content_tokens(predictor.tokenizer.cut([normalise(text)], NO_DEADLINE)[0])
    try:
        spans: Sequence[Span] = words_of(text, content, predictor.tokenizer, NO_DEADLINE)
    except WordsUnknown:
        return []
    return [(span.start, span.end) for span in spans]


def named_places(deciding: Sequence[DecidingWord], words: Places) -> Places:
    """The places of all words that an explanation names."""
    return [place for place in words if any(one.start <= place[0] < one.end for one in deciding)]


def without(text: str, places: Places) -> str:
    """A text without the characters of these places."""
    for start, end in sorted(places, reverse=True):
        text = text[:start] + text[end:]
    return text


def _probability(predictor: Predictor, text: str, head: str, label: int) -> float:
    return to_floats(predictor.predict([text], [head]).answers[head][0])[label]


def _texts(options: argparse.Namespace) -> list[str]:
    if options.table:
        return read_table(options.table, Columns(options.text, options.text)).texts
    from coldframe_training.training.newsgroups import load_task

    return next(iter(load_task().test.forms.values()))


def main() -> None:
    """Prints the share of texts by the method of their explanation."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=Path, default=Path("models"))
    parser.add_argument("--model", default="topics")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--text", default="body")
    parser.add_argument("--head", default=AUTO)
    parser.add_argument("--spans", type=int, default=10, help="Most named words that are removed.")
    parser.add_argument("--texts", type=int, default=300)
    options = parser.parse_args()
    predictor = load_models(Settings(model_dir=options.models, models=options.model)).default
    chance = random.Random(1)
    texts = sorted({text for text in _texts(options) if len(text.split()) >= _LEAST_WORDS})
    sample = chance.sample(texts, min(options.texts, len(texts)))
    tests = [
        done
        for text in Progress(sample, desc="texts", unit="text")
        if (done := delete_words(predictor, text, options.head, options.spans, chance))
    ]
    print("| explanation | texts | named words take more | probability | without named | without random |")
    print("|---|---|---|---|---|---|")
    for method in (*sorted({test.method for test in tests}), "all"):
        rows = [test for test in tests if method in (test.method, "all")]
        better = sum(test.is_better for test in rows) / len(rows)
        means = [math.fsum(column) / len(rows) for column in list(zip(*rows, strict=True))[:3]]
        print(
            f"| {method} | {len(rows):,} | {better:.1%} | "
            + " | ".join(f"{mean:.2f}" for mean in means)
            + " |"
        )


if __name__ == "__main__":
    main()
