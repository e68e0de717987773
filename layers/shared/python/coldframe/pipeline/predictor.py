"""The path of a request through a model, step by step, on one screen."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from coldframe.cache.cache import CacheLookup, CacheScope, PredictionCache, Unsaved
from coldframe.cache.values import Shapes
from coldframe.errors import Invalid, echo
from coldframe.model.bundle import EncoderManifest, Manifest
from coldframe.model.estimator import Guess, TextEstimator, is_lasting, split_answers
from coldframe.model.files import AUTO, ENSEMBLE
from coldframe.model.model import Model
from coldframe.model.tokenizer import TextTokenizer, content_tokens, normalise_all
from coldframe.pipeline.answers import Embedding, Encoded, Prediction
from coldframe.pipeline.encoding import ToEncode, plan_encoding, usage_of
from coldframe.timing import NO_DEADLINE, Deadline, StageTimes
from coldframe.vectors import Vector

if TYPE_CHECKING:
    from coldframe.pipeline.ensemble import Fit
    from coldframe.pipeline.observer import Observer


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
        self.tokenizer = tokenizer
        self.estimator = estimator
        heads = {name: facts.min_probability for name, facts in manifest.named_heads.items()}
        self.min_probability = {AUTO: manifest.estimator.min_probability, **heads}
        shapes = Shapes(len(manifest.labels), encoder.facts.dimension)
        self._scope = CacheScope(manifest.version, encoder.version, shapes)
        self.count_unknown = estimator.count_unknown
        self.observer: Observer | None = None

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
        embeddings: Mapping[str, Vector] | None = None,
        fit: "Fit | None" = None,
    ) -> Prediction:
        """Probabilities of every label for each text, by each of `heads`, which the model has.

        embeddings: by text, from another model on this encoder: these texts are not encoded again.
        fit: leaves members of the head `ensemble` out for lack of time.

        If there is too little time for the encoder, `auto` gives the estimator's guess, sure or not. `auto`
        reads the windows of a long text until its answer is settled.
        Raises Invalid for a text that is not Unicode, OutOfTime when another head cannot
        answer in time, and a BundleError when a head cannot be read.
        """
        if ENSEMBLE in heads and self.manifest.ensemble:
            from coldframe.pipeline.ensemble import predict_ensemble

            facts = self.manifest.ensemble
            return predict_ensemble(self, facts, texts, heads, use_cache, deadline, embeddings)
        times = StageTimes()
        with times.stage("cache"):
            texts = normalise_all(texts, deadline)
            unique = list(dict.fromkeys(texts))
            lookup = self.cache.lookup(self._scope, heads, unique) if use_cache else CacheLookup()
            lookup.embeddings |= embeddings or {}
            missing = lookup.lacking(heads, unique)
        with times.stage("tokenize"):
            unseen = [text for text in missing if AUTO in heads or text not in lookup.embeddings]
            windows = dict(zip(unseen, self.tokenizer.cut(unseen, deadline), strict=True))
        if fit is not None:
            heads = fit(missing, windows, lookup)
            missing = lookup.lacking(heads, unique)
        with times.stage("estimate"):
            others = [head for head in heads if head != AUTO]
            to_guess = missing if AUTO in heads else []
            guesses = {
                text: self.estimator.guess(content_tokens(windows[text]), deadline) for text in to_guess
            }
            work = plan_encoding(
                missing, others, windows, lookup.embeddings, guesses, self.manifest.estimator
            )
        encoded = Encoded()
        if work.texts or work.long:
            work.check_time(self.model.encoder, deadline)
            with times.stage("encode"):
                embedded = self.model.encoder.embed(work.rows(), deadline, work.later())
            encoded = work.encoded(embedded, self.model, self.estimator.is_settled, deadline, times)
        with times.stage("heads"):
            computed = work.answers(self.model.heads.classify(encoded.vectors, work.needed_heads()))
        with times.stage("cache"):
            unsaved: Unsaved = {}
            if use_cache:
                lasting = {name: row for name, row in computed.items() if is_lasting(name[0], row)}
                unsaved = self.cache.keep(lookup, lasting, encoded.fresh, encoded.tokens)
            values = computed | lookup.predictions
            answers, sources = split_answers({head: [values[head, text] for text in texts] for head in heads})
        if self.observer is not None:
            self.observer.observe(computed, windows, encoded.fresh)
        estimated = len(missing) - len(encoded.vectors.keys() | encoded.settled)
        usage = usage_of(encoded, texts, unique, estimated, lookup.count(heads, unique, encoded.vectors))
        return Prediction(usage, times, unsaved, lookup.error, answers, sources, encoded.vectors)

    def embed(self, texts: Sequence[str], deadline: Deadline = NO_DEADLINE) -> Embedding:
        """The embedding of each text. Raises the errors of `predict`."""
        times = StageTimes()
        with times.stage("cache"):
            texts = normalise_all(texts, deadline)
            unique = list(dict.fromkeys(texts))
            lookup = self.cache.lookup(self._scope, [], unique)
        with times.stage("tokenize"):
            windows = dict(zip(unique, self.tokenizer.cut(unique, deadline), strict=True))
        work = ToEncode(unique, windows, lookup.embeddings, is_required=True)
        work.check_time(self.model.encoder, deadline)
        with times.stage("encode"):
            embedded = self.model.encoder.embed(work.rows(), deadline)
        encoded = work.encoded(embedded, self.model, self.estimator.is_settled, deadline, times)
        with times.stage("cache"):
            unsaved = self.cache.keep(lookup, {}, encoded.fresh, encoded.tokens)
        usage = usage_of(encoded, texts, unique, 0, lookup.count([], unique, unique))
        vectors = [encoded.vectors[text] for text in texts]
        prompt_tokens = sum(len(row) for text in texts for row in windows[text])
        return Embedding(usage, times, unsaved, lookup.error, vectors, prompt_tokens)

    def guess(self, texts: Sequence[str], deadline: Deadline = NO_DEADLINE) -> list[Guess]:
        """The estimator's guess for each text, sure or not; the encoder is not run.

        Raises Invalid and OutOfTime, as `predict` does.
        """
        cut = self.tokenizer.cut(normalise_all(texts, deadline), deadline)
        return [self.estimator.guess(content_tokens(windows), deadline) for windows in cut]
