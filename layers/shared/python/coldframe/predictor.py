"""The road of a request, in order: this screen is the product."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from coldframe.auto import AUTO, Guess, auto_row, split_rows
from coldframe.batching import plan_batches
from coldframe.bundle import Manifest, load_golden, load_manifest
from coldframe.cache import Known, PredictionCache, load_cache
from coldframe.config import Settings
from coldframe.encoder import Embeddings, Encoder, Window, check_golden, content_tokens, pool_windows
from coldframe.errors import Invalid
from coldframe.estimator import Estimator
from coldframe.heads import Head, Probabilities, load_head
from coldframe.schemas import By, CacheUsage, Usage
from coldframe.timing import StageTimes


@dataclass(frozen=True)
class Prediction:
    """Probabilities (n, k) by head, rows in input order; what they cost; where the time went.

    by: who gave each answer of the head `auto`; empty when it was not asked.
    """

    probabilities: dict[str, Probabilities]
    by: list[By]
    usage: Usage
    times: StageTimes
    cache_error: str | None = None
    """Name of what went wrong in the shared cache, for the log."""


@dataclass(frozen=True)
class Embedded:
    """Embeddings (n, d), rows in input order; what they cost; where the time went.

    prompt_tokens: of all texts, also of those that were embedded once for several.
    """

    embeddings: Embeddings
    prompt_tokens: int
    usage: Usage
    times: StageTimes


class TextEncoder(Protocol):
    """What the road needs of an encoder."""

    dimension: int

    def tokenize(self, texts: Sequence[str]) -> list[list[Window]]: ...

    def encode(self, rows: Sequence[Window]) -> Embeddings: ...


class TextEstimator(Protocol):
    """What the road needs of an estimator."""

    def predict(self, ids: Iterable[int]) -> list[float]: ...

    def is_sure(self, probabilities: Sequence[float]) -> bool: ...


class Predictor:
    """What an environment loads once, and the road that each request takes through it."""

    def __init__(
        self,
        manifest: Manifest,
        encoder: TextEncoder,
        estimator: TextEstimator,
        read_head: Callable[[str], Head],
        cache: PredictionCache,
        max_batch_tokens: int,
    ) -> None:
        self.manifest = manifest
        self._encoder = encoder
        self._estimator = estimator
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
            unseen = [text for text in missing if AUTO in heads or text not in known.embeddings]
        with times.stage("tokenize"):
            windows = dict(zip(unseen, self._encoder.tokenize(unseen), strict=True))
        with times.stage("estimate"):
            guesses = {text: self._guess(windows[text]) for text in missing if AUTO in heads}
            named = [head for head in heads if head != AUTO]
            needed = [text for text in missing if named or not guesses[text].sure]
            encoded = [text for text in needed if text not in known.embeddings]
        with times.stage("encode"):
            vectors, batches = self._embed([windows[text] for text in encoded])
            embedded = {text: row.tobytes() for text, row in zip(encoded, vectors, strict=True)}
        with times.stage("heads"):
            embeddings = _stack([embedded.get(text) or known.embeddings[text] for text in needed])
            computed = list(self._answers(named, needed, embeddings, guesses))
        tokens = sum(len(window) for text in encoded for window in windows[text])
        with times.stage("cache"):
            fresh = {(head, text): row.tobytes() for head, text, row in computed}
            if use_cache:
                self.cache.keep(known, fresh, embedded, tokens, times.spent_ms("tokenize", "encode"))
            found = fresh | known.predictions
            rows = {head: _stack([found[head, text] for text in texts]) for head in heads}
        answers, by = _split_auto(rows)
        usage = Usage(
            texts=len(texts),
            unique=len(unique),
            estimated=len(missing) - len(needed),
            tokens=tokens,
            padded_tokens=tokens,  # rows of a batch have one length: nothing is padded
            windows=sum(len(windows[text]) for text in encoded),
            batches=batches,
            cache=known.count(heads, unique, needed),
        )
        return Prediction(answers, by, usage, times, known.error)

    def _embed(self, windows: Sequence[Sequence[Window]]) -> tuple[Embeddings, int]:
        return embed_windows(self._encoder, windows, self._max_batch_tokens)

    def _guess(self, windows: Sequence[Window]) -> Guess:
        probabilities = self._estimator.predict(content_tokens(windows))
        return Guess(probabilities, self._estimator.is_sure(probabilities))

    def _answers(
        self, named: Sequence[str], texts: Sequence[str], embeddings: Embeddings, guesses: Mapping[str, Guess]
    ) -> Iterator[tuple[str, str, NDArray[np.float32]]]:
        """Head, text and row: of the heads named for every text encoded, of `auto` for every text guessed."""
        partner = self.manifest.estimator.partner
        asked = dict.fromkeys([*named, partner] if guesses else named) if texts else {}
        rows = {
            head: dict(zip(texts, found, strict=True))
            for head, found in self.classify(embeddings, list(asked)).items()
        }
        for head in named:
            for text in texts:
                yield head, text, rows[head][text]
        for text, guess in guesses.items():
            yield AUTO, text, auto_row(guess, None if guess.sure else rows[partner][text])

    def preload(self, heads: Sequence[str]) -> None:
        """Reads heads before they are asked for."""
        for head in heads:
            self._head(head)

    def embed(self, texts: Sequence[str]) -> Embedded:
        """The embedding of each text. Raises Invalid for a text that is not Unicode."""
        times = StageTimes()
        with times.stage("tokenize"):
            texts = [normalise(text) for text in texts]
            row_of = {text: row for row, text in enumerate(dict.fromkeys(texts))}
            rows = [row_of[text] for text in texts]
            windows = self._encoder.tokenize(list(row_of))
        with times.stage("encode"):
            embeddings, batches = self._embed(windows)
        tokens = [sum(map(len, text)) for text in windows]
        usage = Usage(
            texts=len(texts),
            unique=len(row_of),
            tokens=sum(tokens),
            padded_tokens=sum(tokens),
            windows=sum(map(len, windows)),
            batches=batches,
            estimated=0,
            cache=CacheUsage(l1=0, l2=0, embedding=0, miss=0),
        )
        return Embedded(embeddings[rows], sum(tokens[row] for row in rows), usage, times)

    def classify(self, embeddings: Embeddings, heads: Sequence[str]) -> dict[str, Probabilities]:
        """Probabilities (n, k) by each of `heads` for embeddings (n, d) that the caller has."""
        return {head: self._head(head).predict(embeddings) for head in heads}


def embed_windows(
    encoder: TextEncoder, windows: Sequence[Sequence[Window]], max_batch_tokens: int
) -> tuple[Embeddings, int]:
    """Embeddings (n, d) of n texts from their windows, and how many forward passes they took."""
    rows = [window for text in windows for window in text]
    lengths = [len(row) for row in rows]
    embeddings = np.empty((len(rows), encoder.dimension), dtype=np.float32)
    batches = plan_batches(lengths, max_batch_tokens)
    for batch in batches:
        embeddings[batch] = encoder.encode([rows[row] for row in batch])
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
    estimator = Estimator(folder, manifest.estimator)
    if settings.verify_at_init:
        check_golden(encoder, load_golden(folder), at_most=1)
    cache = load_cache(settings, manifest)
    read_head = partial(load_head, folder)
    predictor = Predictor(manifest, encoder, estimator, read_head, cache, settings.max_batch_tokens)
    # In the init phase, which has more CPU than an invocation.
    predictor.preload([manifest.estimator.partner])
    return predictor


def normalise(text: str) -> str:
    """The form in which a text is compared and tokenized: white space runs are one space.

    Raises Invalid for lone surrogates: they are no Unicode text, and no tokenizer takes them.
    """
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise Invalid("A text holds a lone surrogate, no Unicode character. Send valid Unicode.") from exc
    return " ".join(text.split())


def _split_auto(rows: Mapping[str, NDArray[np.float32]]) -> tuple[dict[str, Probabilities], list[By]]:
    """Probabilities (n, k) by head, and who gave those of `auto`, if it is among them."""
    probabilities, by = dict(rows), list[By]()
    if AUTO in rows:
        probabilities[AUTO], by = split_rows(rows[AUTO])
    return probabilities, by


def _stack(values: Sequence[bytes]) -> Probabilities:
    return np.frombuffer(b"".join(values), dtype=np.float32).reshape(len(values), -1 if values else 0)
