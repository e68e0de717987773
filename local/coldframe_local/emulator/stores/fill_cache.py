"""Fills the shared cache from a list of common texts, so that they are answered from it later."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from coldframe.cache.dynamodb_store import chunks
from coldframe.config import load_settings
from coldframe.errors import ColdframeError
from coldframe.model.tokenizer import normalise
from coldframe.pipeline.models import load_predictor
from coldframe.pipeline.predictor import Predictor
from coldframe.progress import Progress

_TEXTS = 32
_DEADLINE_MS = 30_000  # nobody waits for an answer here


class BadTexts(ColdframeError):
    """The list of texts cannot be read."""


class NotFilled(ColdframeError):
    """The table does not take what is written to it."""


@dataclass
class Counts:
    """Texts of the list, its repeated texts, and predictions: cached before, or added by this run."""

    texts: int = 0
    repeated: int = 0
    cached: int = 0
    added: int = 0

    def __str__(self) -> str:
        return (
            f"{self.texts} texts, {self.repeated} of them repeated:"
            f" {self.added} predictions written, {self.cached} known already"
        )


def fill(path: Path, model_dir: Path, heads: tuple[str, ...]) -> Counts:
    """Predicts each text of `path` that the table does not have, by each head, and writes it there.

    Raises BadTexts, NotFilled, or BadSetting. What was written before that stays: the next run skips it.
    """
    settings = replace(
        load_settings(os.environ),
        model_dir=model_dir,
        cache_policy="always",
        cache_deadline_ms=_DEADLINE_MS,
        l1_cache_bytes=0,  # what counts is what the table has
    )
    if not settings.cache_table:
        raise NotFilled("COLDFRAME_CACHE_TABLE is not set. Set it to the name of the table to fill.")
    predictor = load_predictor(settings)
    all_heads = predictor.min_probability
    head_names = tuple(dict.fromkeys(heads or all_heads))
    for head in head_names:
        if head not in all_heads:
            raise BadTexts(f'"{head}" is not a head of this model. Heads: {", ".join(all_heads)}.')
    total = sum(
        1 for _ in read_texts(path)
    )  # reads it all before anything is written: a bad line comes first
    counts = Counts()
    with Progress(total=total, desc="filling", unit="text") as bar:
        for texts in chunks(_once(read_texts(path), counts, bar), _TEXTS):
            _fill(predictor, texts, head_names, counts)
            bar.update(len(texts))
    return counts


def read_texts(path: Path) -> Iterator[str]:
    """The texts of a file with one JSON value per line: an object with "text", or a string.

    Raises BadTexts, which names the line and not what is in it.
    """
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _text_of(line, f"{path}:{number}")
    except UnicodeDecodeError as exc:
        raise BadTexts(f"{path} is not UTF-8. Convert it first.") from exc


def _text_of(line: str, place: str) -> str:
    try:
        value = json.loads(line)
    except ValueError as exc:
        raise BadTexts(f'{place} is not JSON. Expected {{"text": "…"}} or a string on every line.') from exc
    text = value.get("text") if isinstance(value, dict) else value
    if not isinstance(text, str):
        raise BadTexts(f'{place} has no text. Expected {{"text": "…"}} or a string on every line.')
    return normalise(text)


def _once(texts: Iterable[str], counts: Counts, bar: Any) -> Iterator[str]:
    """Each text the first time it is met. Remembers digests: a list may be larger than memory."""
    digests: set[bytes] = set()
    for text in texts:
        counts.texts += 1
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        if digest in digests:
            counts.repeated += 1
            bar.update()
        else:
            digests.add(digest)
            yield text


def _fill(predictor: Predictor, texts: Sequence[str], heads: tuple[str, ...], counts: Counts) -> None:
    prediction = predictor.predict(texts, heads)
    saved = predictor.cache.save(prediction.unsaved)
    usage = prediction.usage.cache
    failure = prediction.cache_error or (saved.failure if saved else None)
    if failure or usage.breaker != "closed" or (saved is not None and saved.values < saved.of):
        raise NotFilled(
            f"The table does not take what is written: {failure or 'values too large, and no bucket'}."
            f" So far, {counts}. Run the command again to go on from here."
        )
    counts.cached += usage.l2
    counts.added += usage.miss + usage.embedding
