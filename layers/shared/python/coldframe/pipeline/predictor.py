"""The path of a request through a model, step by step, on one screen."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Protocol

from coldframe.cache.cache import CacheLookup, CacheScope, PredictionCache, Unsaved
from coldframe.cache.values import Shapes
from coldframe.errors import Invalid, OutOfTime, Overloaded, echo
from coldframe.model.bundle import EncoderManifest, Manifest
from coldframe.model.estimator import (
    UNTEMPERED,
    AnswerSource,
    Guess,
    answer_auto,
    source_of,
    split_answers,
)
from coldframe.model.files import AUTO
from coldframe.model.model import Model
from coldframe.model.tokenizer import Window, content_tokens
from coldframe.pipeline.answers import Embedding, Encoded, Prediction
from coldframe.pipeline.rounds import LongText, read_in_rounds, rounds_of
from coldframe.schemas import CacheUsage, Usage
from coldframe.text import normalise
from coldframe.timing import NO_DEADLINE, Deadline, StageTimes
from coldframe.vectors import Vector


class TextTokenizer(Protocol):
    """A tokenizer. Safe for threads."""

    def cut(self, texts: Sequence[str], deadline: Deadline) -> list[list[Window]]: ...


class TextEstimator(Protocol):
    """An estimator. Safe for threads."""

    def evidence(self, ids: Iterable[int]) -> list[float]: ...

    def probabilities(self, evidence: Iterable[float]) -> list[float]: ...

    def out_of_distribution(self, evidence: Sequence[float]) -> float: ...

    def is_sure(self, probabilities: Sequence[float], ids: Iterable[int]) -> bool: ...

    def is_settled(self, answer: Sequence[float]) -> bool: ...


class Predictor:
    """One model, and the path of each request through it.

    Safe for threads: a request's state is in local variables and in its answer.
    model: encoder and heads; the estimator works without them.
    min_probability: by head; below it, the head abstains unless a request says otherwise.
    """

    def __init__(
        self,
        manifest: Manifest,
        encoder: EncoderManifest,
        tokenizer: TextTokenizer,
        estimator: TextEstimator,
        model: Model,
        cache: PredictionCache,
    ) -> None:
        self.manifest = manifest
        self.encoder = encoder
        self.model = model
        self.cache = cache
        self._tokenizer = tokenizer
        self._estimator = estimator
        self._temperatures = manifest.estimator.answer_temperatures or UNTEMPERED
        heads = {name: facts.min_probability for name, facts in manifest.heads.items()}
        self.min_probability = {AUTO: manifest.estimator.min_probability, **heads}
        shapes = Shapes(len(manifest.labels), encoder.facts.dimension)
        self._scope = CacheScope(manifest.version, encoder.version, shapes)

    def check_heads(self, heads: Iterable[str]) -> None:
        """Raises Invalid for the first of `heads` that the model lacks, and lists the model's heads."""
        for head in heads:
            if head not in self.min_probability:
                names = ", ".join(self.min_probability)
                raise Invalid(f"{echo(head)} is not a head of this model. Request one of: {names}.")

    def predict(
        self,
        texts: Sequence[str],
        heads: Sequence[str],
        use_cache: bool = True,
        deadline: Deadline = NO_DEADLINE,
    ) -> Prediction:
        """Probabilities of every label for each text, by each of `heads`, which the model has.

        If there is too little time for the encoder, `auto` gives the estimator's guess, sure or not. `auto`
        reads the
        windows of a long text until its answer is settled.
        Raises Invalid for a text that is not Unicode, OutOfTime when another head cannot
        answer in time, and a BundleError when a head cannot be read.
        """
        times = StageTimes()
        others = [head for head in heads if head != AUTO]
        with times.stage("cache"):
            texts = _normalised(texts, deadline)
            unique = list(dict.fromkeys(texts))
            lookup = self.cache.lookup(self._scope, heads, unique) if use_cache else CacheLookup()
            missing = lookup.lacking(heads, unique)
            unseen = [text for text in missing if AUTO in heads or text not in lookup.embeddings]
        with times.stage("tokenize"):
            windows = dict(zip(unseen, self._tokenizer.cut(unseen, deadline), strict=True))
        with times.stage("estimate"):
            guesses = {text: self._guess(windows[text], deadline) for text in missing if AUTO in heads}
            unsure = [text for text in guesses if not guesses[text].sure]
            long = self._find_long(unsure, windows, guesses, lookup.embeddings, is_embedded=bool(others))
            to_encode = missing if others else [text for text in unsure if text not in long]
        encoded = self._encode(to_encode, long, windows, lookup.embeddings, deadline, times, bool(others))
        with times.stage("heads"):
            final_guesses = {text: guess for text, guess in guesses.items() if text not in long}
            computed = self._classify(others, encoded.vectors, final_guesses)
            computed |= {(AUTO, text): read.final_answer for text, read in long.items()}
        with times.stage("cache"):
            unsaved: Unsaved = {}
            if use_cache:  # except guesses made for lack of time
                rushed = {
                    (AUTO, text) for text in unsure if source_of(computed[AUTO, text]) is AnswerSource.RUSHED
                }
                lasting = {name: row for name, row in computed.items() if name not in rushed}
                unsaved = self.cache.keep(lookup, lasting, encoded.fresh, encoded.tokens)
            values = computed | lookup.predictions
            rows = {head: [values[head, text] for text in texts] for head in heads}
        answers, sources = split_answers(rows)
        estimated = len(missing) - len(encoded.vectors.keys() | encoded.settled)
        usage = _usage(encoded, texts, unique, estimated, lookup.count(heads, unique, encoded.vectors))
        return Prediction(usage, times, unsaved, lookup.error, answers, sources)

    def embed(self, texts: Sequence[str], deadline: Deadline = NO_DEADLINE) -> Embedding:
        """The embedding of each text. Raises the errors of `predict`."""
        times = StageTimes()
        with times.stage("cache"):
            texts = _normalised(texts, deadline)
            unique = list(dict.fromkeys(texts))
            lookup = self.cache.lookup(self._scope, [], unique)
        with times.stage("tokenize"):
            windows = dict(zip(unique, self._tokenizer.cut(unique, deadline), strict=True))
        encoded = self._encode(unique, {}, windows, lookup.embeddings, deadline, times, require_all=True)
        with times.stage("cache"):
            unsaved = self.cache.keep(lookup, {}, encoded.fresh, encoded.tokens)
        tokens = {text: sum(map(len, rows)) for text, rows in windows.items()}
        usage = _usage(encoded, texts, unique, 0, lookup.count([], unique, unique))
        vectors = [encoded.vectors[text] for text in texts]
        prompt_tokens = sum(tokens[text] for text in texts)
        return Embedding(usage, times, unsaved, lookup.error, vectors, prompt_tokens)

    def guess(self, texts: Sequence[str], deadline: Deadline = NO_DEADLINE) -> list[Guess]:
        """The estimator's guess for each text, sure or not; the encoder is not run.

        Raises Invalid and OutOfTime, as `predict` does.
        """
        windows = self._tokenizer.cut(_normalised(texts, deadline), deadline)
        return [self._guess(cut, deadline) for cut in windows]

    def _guess(self, windows: Sequence[Window], deadline: Deadline) -> Guess:
        deadline.check()
        ids = content_tokens(windows)
        evidence = self._estimator.evidence(ids)
        probabilities = self._estimator.probabilities(evidence)
        sure = self._estimator.is_sure(probabilities, ids)
        strangeness = self._estimator.out_of_distribution(evidence)
        return Guess(probabilities, sure, strangeness, self._temperatures)

    def _find_long(
        self,
        unsure: Sequence[str],
        windows: Mapping[str, Sequence[Window]],
        guesses: Mapping[str, Guess],
        cached: Mapping[str, Vector],
        is_embedded: bool,
    ) -> dict[str, LongText]:
        """Texts that `auto` reads window after window. is_embedded: other heads need their embeddings."""
        if self.manifest.estimator.settled_margin >= 1:
            return {}
        return {
            text: LongText(windows[text], guesses[text], text in cached, is_embedded)
            for text in unsure
            if len(windows[text]) > 1
        }

    def _encode(
        self,
        texts: Sequence[str],
        long: Mapping[str, LongText],
        windows: Mapping[str, Sequence[Window]],
        cached: Mapping[str, Vector],
        deadline: Deadline,
        times: StageTimes,
        require_all: bool,
    ) -> Encoded:
        """Embeddings of texts, as far as the time allows. require_all: raises OutOfTime unless all are
        computed.

        long: texts that are read in rounds. They hold their answers afterwards.
        """
        if not texts and not long:
            return Encoded()
        unknown = [text for text in texts if text not in cached]
        tokens = sum(len(row) for text in unknown for row in windows[text])
        encoder = self.model.encoder
        if require_all and encoder.expected_s(tokens) > deadline.remaining_s():
            raise OutOfTime(_no_time(len(unknown), tokens, deadline))
        at_once = [text for text in unknown if text not in long]
        with times.stage("encode"):
            rounds = rounds_of(long.values()) if long else ()
            embedded = encoder.embed([windows[text] for text in at_once], deadline, rounds)
        fresh = {text: row for text, row in zip(at_once, embedded.vectors, strict=True) if row is not None}
        vectors = {text: cached[text] for text in texts if text in cached} | fresh
        encoded = Encoded(vectors, fresh, embedded.tokens, embedded.windows, embedded.batches)
        if long:
            partner, is_settled = self.manifest.estimator.partner, self._estimator.is_settled
            encoded += read_in_rounds(long, self.model, partner, is_settled, deadline, times)
        if require_all and len(encoded.vectors) < len(texts):
            detail = _no_time(len(unknown), tokens, deadline)
            late_s = embedded.retry_after_s
            raise OutOfTime(detail) if late_s is None else Overloaded(detail, late_s)
        return encoded

    def _classify(
        self, heads: Sequence[str], vectors: Mapping[str, Vector], guesses: Mapping[str, Guess]
    ) -> dict[tuple[str, str], Vector]:
        """Row by (head, text): of `heads` for encoded texts, of `auto` for texts with a guess."""
        partner = self.manifest.estimator.partner
        names = [*heads, partner] if guesses else heads
        rows = self.model.heads.classify(vectors, names) if vectors else {}
        computed = {(head, text): rows[head][text] for head in heads for text in vectors}
        for text, guess in guesses.items():
            aided = text in vectors and not guess.sure
            computed[AUTO, text] = answer_auto(guess, rows[partner][text] if aided else None)
        return computed


def _normalised(texts: Sequence[str], deadline: Deadline) -> list[str]:
    """Texts in normal form. Raises the errors of `Deadline.check`."""
    normalised = []
    for text in texts:
        deadline.check()
        normalised.append(normalise(text, deadline.check))
    return normalised


def _usage(encoded: Encoded, texts: Sized, unique: Sized, estimated: int, cache: CacheUsage) -> Usage:
    """Usage of an answer with these embeddings."""
    return Usage(
        texts=len(texts),
        unique=len(unique),
        estimated=estimated,
        tokens=encoded.tokens,
        padded_tokens=encoded.tokens,  # rows of a batch have one length: nothing is padded
        windows=encoded.windows,
        batches=encoded.batches,
        cache=cache,
    )


def _no_time(texts: int, tokens: int, deadline: Deadline) -> str:
    left_s = max(0.0, deadline.remaining_s())
    return (
        f"There are {texts} texts with {tokens} tokens to encode, and {left_s:.2f} s left: too little."
        " Send fewer texts at once, raise the function's timeout or `budget_ms`,"
        " or request the head `auto` alone: it can answer without the encoder."
    )
