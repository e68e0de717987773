"""The road of a request, in order: this screen is the product."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from coldframe.batching import plan_batches
from coldframe.bundle import Manifest, load_golden, load_manifest
from coldframe.cache import Known, PredictionCache, load_cache
from coldframe.config import Settings
from coldframe.encoder import Embeddings, Encoder, Window, check_golden, pool_windows
from coldframe.errors import Invalid
from coldframe.heads import Head, Probabilities, load_head
from coldframe.schemas import Usage
from coldframe.timing import StageTimes


@dataclass(frozen=True)
class Prediction:
    """Probabilities (n, k) by head, rows in input order; what they cost; where the time went."""

    probabilities: dict[str, Probabilities]
    usage: Usage
    times: StageTimes
    cache_error: str | None = None
    """Name of what went wrong in the shared cache, for the log."""


class TextEncoder(Protocol):
    """What the road needs of an encoder."""

    dimension: int

    def tokenize(self, texts: Sequence[str]) -> list[list[Window]]: ...

    def encode(self, rows: Sequence[Window]) -> Embeddings: ...


class Predictor:
    """What an environment loads once, and the road that each request takes through it."""

    def __init__(
        self,
        manifest: Manifest,
        encoder: TextEncoder,
        read_head: Callable[[str], Head],
        cache: PredictionCache,
        max_batch_tokens: int,
    ) -> None:
        self.manifest = manifest
        self._encoder = encoder
        self._head = functools.cache(read_head)  # a head is read when it is first asked for
        self.cache = cache
        self._max_batch_tokens = max_batch_tokens

    def predict(self, texts: Sequence[str], heads: Sequence[str], use_cache: bool = True) -> Prediction:
        """Probabilities of every label for each text, by each of `heads`, which the bundle has.

        Raises Invalid for a text that is not Unicode.
        """
        times = StageTimes()
        with times.stage("cache"):
            texts = [normalise(text) for text in texts]
            unique = list(dict.fromkeys(texts))
            known = self.cache.lookup(self.manifest.version, heads, unique) if use_cache else Known()
            missing = [text for text in unique if known.lacks(heads, text)]
            unseen = [text for text in missing if text not in known.embeddings]
        with times.stage("tokenize"):
            windows = self._encoder.tokenize(unseen)
        with times.stage("encode"):
            rows, batches = self._embed(windows)
            embedded = {text: row.tobytes() for text, row in zip(unseen, rows, strict=True)}
        with times.stage("heads"):
            embeddings = _stack([embedded.get(text) or known.embeddings[text] for text in missing])
            computed = {head: self._head(head).predict(embeddings) for head in heads if missing}
        tokens = sum(len(window) for text in windows for window in text)
        with times.stage("cache"):
            fresh = {
                (head, text): row.tobytes()
                for head, rows in computed.items()
                for text, row in zip(missing, rows, strict=True)
            }
            if use_cache:
                spent_ms = times.stages_ms["tokenize"] + times.stages_ms["encode"]
                self.cache.keep(known, fresh, embedded, tokens, spent_ms)
            found = fresh | known.predictions
            answers = {head: _stack([found[head, text] for text in texts]) for head in heads}
        usage = Usage(
            texts=len(texts),
            unique=len(unique),
            tokens=tokens,
            padded_tokens=tokens,  # rows of a batch have one length: nothing is padded
            windows=sum(map(len, windows)),
            batches=batches,
            cache=known.count(heads, unique),
        )
        return Prediction(answers, usage, times, known.error)

    def _embed(self, windows: Sequence[Sequence[Window]]) -> tuple[Embeddings, int]:
        """Embeddings (n, d) of n texts, and how many forward passes they took."""
        rows = [window for text in windows for window in text]
        lengths = [len(row) for row in rows]
        embeddings = np.empty((len(rows), self._encoder.dimension), dtype=np.float32)
        batches = plan_batches(lengths, self._max_batch_tokens)
        for batch in batches:
            embeddings[batch] = self._encoder.encode([rows[row] for row in batch])
        return pool_windows(embeddings, lengths, [len(text) for text in windows]), len(batches)


def load_predictor(settings: Settings) -> Predictor:
    """The predictor of the bundle in `settings.model_dir`.

    Raises a BundleError when the bundle cannot be served on this machine.
    """
    folder = settings.model_dir
    manifest = load_manifest(folder)
    if settings.max_windows:
        manifest = manifest.with_windows(settings.max_windows)
    encoder = Encoder(folder, manifest.encoder, settings.threads)
    if settings.verify_at_init:
        check_golden(encoder, load_golden(folder), at_most=1)
    cache = load_cache(settings, manifest)
    return Predictor(manifest, encoder, partial(load_head, folder), cache, settings.max_batch_tokens)


def normalise(text: str) -> str:
    """The form in which a text is compared and tokenized: white space runs are one space.

    Raises Invalid for lone surrogates: they are no Unicode text, and no tokenizer takes them.
    """
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise Invalid(
            "A text holds a lone surrogate, which is no Unicode character. Send valid Unicode."
        ) from exc
    return " ".join(text.split())


def _stack(values: Sequence[bytes]) -> Probabilities:
    return np.frombuffer(b"".join(values), dtype=np.float32).reshape(len(values), -1 if values else 0)
