"""The road of a request, in order: this screen is the product."""

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from functools import partial
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from coldframe.api.schemas import CacheUsage, Usage
from coldframe.cache.cache import Known, PredictionCache, load_cache
from coldframe.coldstart.collector import paused_collector
from coldframe.coldstart.lazy import Background
from coldframe.config import Settings
from coldframe.errors import OutOfTime
from coldframe.model.bundle import Manifest, load_manifest
from coldframe.model.estimator import Estimator
from coldframe.model.files import AUTO
from coldframe.model.tokenizer import TextWindows, Window, content_tokens
from coldframe.pipeline.auto import Giver, Guess, answer_auto, split_answers
from coldframe.text import normalise
from coldframe.timing import Deadline, StageTimes
from coldframe.vectors import Vector

if TYPE_CHECKING:
    from coldframe.model.model import Model

NO_DEADLINE = Deadline(math.inf)

_LOAD_S = 0.3
"""What loading the model takes, roughly: nobody who has less time waits for it."""


class Prediction(Struct, frozen=True):
    """Probabilities (k,) of each text by head, in input order; what they cost; where the time went.

    givers: who gave each answer of the head `auto`; empty when it was not asked.
    cache_error: name of what went wrong in the shared cache, for the log.
    """

    probabilities: dict[str, list[Vector]]
    givers: list[Giver]
    usage: Usage
    times: StageTimes
    cache_error: str | None


class Embedding(Struct, frozen=True):
    """The embedding (d,) of each text, in input order; what they cost; where the time went.

    prompt_tokens: of all texts, also of those that were embedded once for several, or long ago.
    """

    vectors: list[Vector]
    prompt_tokens: int
    usage: Usage
    times: StageTimes
    cache_error: str | None


class TextTokenizer(Protocol):
    """What the road needs of a tokenizer."""

    def cut(self, texts: Sequence[str]) -> list[list[Window]]: ...


class TextEstimator(Protocol):
    """What the road needs of an estimator."""

    def predict(self, ids: Iterable[int]) -> list[float]: ...

    def is_sure(self, probabilities: Sequence[float], ids: Iterable[int]) -> bool: ...


class Encoded(Struct, frozen=True):
    """Embeddings by text, known ones and `fresh` ones, and what the fresh ones took.

    A text that there was no time for is not among them.
    """

    vectors: dict[str, Vector] = field(default_factory=dict)
    fresh: dict[str, Vector] = field(default_factory=dict)
    tokens: int = 0
    windows: int = 0
    batches: int = 0

    def usage(self, texts: Sized, unique: Sized, estimated: int, cache: CacheUsage) -> Usage:
        """What an answer with these embeddings cost."""
        return Usage(
            texts=len(texts),
            unique=len(unique),
            estimated=estimated,
            tokens=self.tokens,
            padded_tokens=self.tokens,  # rows of a batch have one length: nothing is padded
            windows=self.windows,
            batches=self.batches,
            cache=cache,
        )


class Predictor:
    """What an environment loads once, and the road that each request takes through it.

    model: what the estimator can do without; loaded for the first text that cannot, or before.
    """

    def __init__(
        self,
        manifest: Manifest,
        tokenizer: TextTokenizer,
        estimator: TextEstimator,
        model: "Background[Model]",
        cache: PredictionCache,
    ) -> None:
        self.manifest = manifest
        self.model = model
        self.cache = cache
        self._tokenizer = tokenizer
        self._estimator = estimator

    def predict(
        self,
        texts: Sequence[str],
        heads: Sequence[str],
        use_cache: bool = True,
        deadline: Deadline = NO_DEADLINE,
    ) -> Prediction:
        """Probabilities of every label for each text, by each of `heads`, which the bundle has.

        With too little time for the encoder, `auto` is the estimator's guess, sure or not.
        Raises Invalid for a text that is not Unicode, OutOfTime when another head cannot
        answer in time, and a BundleError when there is no model to be loaded.
        """
        times = StageTimes()
        named = [head for head in heads if head != AUTO]
        with times.stage("cache"):
            texts = [normalise(text) for text in texts]
            unique = list(dict.fromkeys(texts))
            known = self.cache.lookup(self.manifest.version, heads, unique) if use_cache else Known()
            missing = [text for text in unique if known.lacks(heads, text)]
            unseen = [text for text in missing if AUTO in heads or text not in known.embeddings]
        with times.stage("tokenize"):
            windows = dict(zip(unseen, self._tokenizer.cut(unseen), strict=True))
        with times.stage("estimate"):
            guesses = {text: self._guess(windows[text]) for text in missing if AUTO in heads}
            needed = [text for text in missing if named or not guesses[text].sure]
        encoded = self._encode(needed, windows, known.embeddings, deadline, times, must=bool(named))
        with times.stage("heads"):
            computed = dict(self._answers(named, encoded.vectors, guesses))
        with times.stage("cache"):
            if use_cache:  # but a guess made in a hurry is not worth keeping
                rushed = {(AUTO, text) for text in needed if text not in encoded.vectors}
                lasting = {name: row for name, row in computed.items() if name not in rushed}
                self._keep(known, lasting, encoded, times)
            found = computed | known.predictions
            rows = {head: [found[head, text] for text in texts] for head in heads}
        answers, givers = split_answers(rows)
        estimated = len(missing) - len(encoded.vectors)
        usage = encoded.usage(texts, unique, estimated, known.count(heads, unique, encoded.vectors))
        return Prediction(answers, givers, usage, times, known.error)

    def embed(self, texts: Sequence[str], deadline: Deadline = NO_DEADLINE) -> Embedding:
        """The embedding of each text. Raises what `predict` raises."""
        times = StageTimes()
        with times.stage("cache"):
            texts = [normalise(text) for text in texts]
            unique = list(dict.fromkeys(texts))
            known = self.cache.lookup(self.manifest.version, [], unique)
        with times.stage("tokenize"):
            windows = dict(zip(unique, self._tokenizer.cut(unique), strict=True))
        encoded = self._encode(unique, windows, known.embeddings, deadline, times, must=True)
        with times.stage("cache"):
            self._keep(known, {}, encoded, times)
        tokens = {text: sum(map(len, rows)) for text, rows in windows.items()}
        usage = encoded.usage(texts, unique, 0, known.count([], unique, unique))
        vectors = [encoded.vectors[text] for text in texts]
        return Embedding(vectors, sum(tokens[text] for text in texts), usage, times, known.error)

    def _guess(self, windows: Sequence[Window]) -> Guess:
        ids = content_tokens(windows)
        probabilities = self._estimator.predict(ids)
        return Guess(probabilities, self._estimator.is_sure(probabilities, ids))

    def _encode(
        self,
        texts: Sequence[str],
        windows: Mapping[str, Sequence[Window]],
        known: Mapping[str, Vector],
        deadline: Deadline,
        times: StageTimes,
        must: bool,
    ) -> Encoded:
        """Embeddings of texts, as far as the time goes. must: of all of them, or OutOfTime is raised."""
        if not texts:
            return Encoded()
        unknown = [text for text in texts if text not in known]
        tokens = sum(len(row) for text in unknown for row in windows[text])
        model = self._load(deadline, times)
        if must and (model is None or model.expected_s(tokens) > deadline.remaining_s()):
            raise OutOfTime(_no_time(len(unknown), tokens, deadline))
        if model is None:
            return Encoded()
        with times.stage("encode"):
            embedded = model.embed([windows[text] for text in unknown], deadline)
        fresh = {text: row for text, row in zip(unknown, embedded.vectors, strict=True) if row is not None}
        if must and len(fresh) < len(unknown):
            raise OutOfTime(_no_time(len(unknown), tokens, deadline))
        vectors = {text: known[text] for text in texts if text in known} | fresh
        return Encoded(vectors, fresh, embedded.tokens, embedded.windows, embedded.batches)

    def _load(self, deadline: Deadline, times: StageTimes) -> "Model | None":
        """The model; None where loading it would probably take longer than there is time."""
        if self.model.is_made:
            return self.model.get()
        if deadline.remaining_s() < _LOAD_S:
            self.model.start()  # somebody will need it
            return None
        with times.stage("load"):
            return self.model.get()

    def _answers(
        self, named: Sequence[str], vectors: Mapping[str, Vector], guesses: Mapping[str, Guess]
    ) -> Iterator[tuple[tuple[str, str], Vector]]:
        """(Head, text) and row: of the named heads for texts encoded, of `auto` for texts guessed."""
        partner = self.manifest.estimator.partner
        asked = list(dict.fromkeys([*named, partner] if guesses else named))
        answered = self.model.get().classify(list(vectors.values()), asked) if vectors else {}
        rows = {head: dict(zip(vectors, found, strict=True)) for head, found in answered.items()}
        for head in named:
            for text in vectors:
                yield (head, text), rows[head][text]
        for text, guess in guesses.items():
            unaided = guess.sure or text not in vectors
            yield (AUTO, text), answer_auto(guess, None if unaided else rows[partner][text])

    def _keep(
        self, known: Known, predictions: Mapping[tuple[str, str], Vector], encoded: Encoded, times: StageTimes
    ) -> None:
        spent_ms = times.spent_ms("tokenize", "encode")
        self.cache.keep(known, predictions, encoded.fresh, encoded.tokens, spent_ms)


def load_predictor(settings: Settings) -> Predictor:
    """The predictor of the bundle in `settings.model_dir`; its model is loaded when it is first needed.

    Raises a BundleError when what the estimator needs cannot be used.
    """
    folder = settings.model_dir
    manifest = load_manifest(folder)
    if settings.max_windows:
        manifest = manifest.with_windows(settings.max_windows)
    tokenizer = TextWindows(folder, manifest.encoder)
    estimator = Estimator(folder, manifest.estimator)
    model = Background(partial(_load_model, settings, manifest, tokenizer))
    return Predictor(manifest, tokenizer, estimator, model, load_cache(settings, manifest))


def _load_model(settings: Settings, manifest: Manifest, windows: TextWindows) -> "Model":
    # BLAS would start threads for the whole machine; heads multiply one row at a time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with paused_collector():
        from coldframe.model.model import load_model  # numpy and onnxruntime, not a moment earlier

        return load_model(settings, manifest, windows)


def _no_time(texts: int, tokens: int, deadline: Deadline) -> str:
    left_s = max(0.0, deadline.remaining_s())
    return (
        f"There are {texts} texts with {tokens} tokens to encode, and {left_s:.2f} s left: too little."
        " Send fewer texts at once, raise the function's timeout or `budget_ms`,"
        " or ask for the head `auto` alone: it answers without the encoder when it has to."
    )
