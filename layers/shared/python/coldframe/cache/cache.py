"""The prediction cache: predictions and embeddings of texts, in this environment's memory or in the shared
cache.

A new head on a text with a cached embedding costs no encoding. Texts are never stored.
"""

import math
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec import Struct, field

from coldframe.cache.values import Kind, Shapes
from coldframe.config import Settings
from coldframe.digests import blake2b
from coldframe.model.bundle import EncoderFacts
from coldframe.model.files import AUTO
from coldframe.schemas import CacheUsage
from coldframe.timing import MovingAverage

if TYPE_CHECKING:
    from coldframe.cache.shared import Saved, SharedCache

CacheKey: TypeAlias = bytes
"""Digest of a text, a version and the kind of value."""

Unsaved: TypeAlias = Mapping[CacheKey, tuple[Kind, bytes]]
"""Values that a request computed and the shared cache lacks. They travel with the request's answer."""

EMBEDDING = "embedding"
"""Takes the place of a head's name in the key of an embedding."""

_KINDS = {AUTO: Kind.AUTO, EMBEDDING: Kind.EMBEDDING}
_KEY_BYTES = 16
_ENTRY_OVERHEAD_BYTES = 250  # key, value header and dictionary slots in CPython, rounded up
_LAYOUT = b"layout 4"
"""Part of every key: values of another layout are never read. 3: predictions end with a score."""


class CacheScope(NamedTuple):
    """Versions in the cache's keys: predictions belong to a model, embeddings to its encoder.

    So a retrained model reuses embeddings, and models of one encoder share them.
    """

    model: str
    encoder: str
    shapes: Shapes

    def key(self, name: str, text: str) -> "CacheKey":
        """The key of a prediction by the head `name`, or of the embedding."""
        return cache_key(self.encoder if name == EMBEDDING else self.model, name, text)


def cache_key(version: str, name: str, text: str) -> CacheKey:
    """The key of one value. It depends on version, head and text, and on nothing else."""
    digest = blake2b(digest_size=_KEY_BYTES, person=_LAYOUT)
    for part in (version, name, text):
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big"))  # different triples have different byte strings
        digest.update(encoded)
    return digest.digest()


def _kind(name: str) -> Kind:
    """The kind of the values under a head's name, or under `EMBEDDING`."""
    return _KINDS.get(name, Kind.PREDICTION)


class CacheLookup(Struct):
    """Result of a cache lookup for the texts of one request. Values are bytes of float32, as `Kind` says."""

    keys: dict[tuple[str, str], CacheKey] = field(default_factory=dict)
    predictions: dict[tuple[str, str], bytes] = field(default_factory=dict)
    """Predictions by (head, text)."""
    embeddings: dict[str, bytes] = field(default_factory=dict)
    """Embeddings by text, for texts that lack a prediction."""
    usage: CacheUsage = field(default_factory=lambda: CacheUsage(l1=0, l2=0, embedding=0, miss=0))
    shareable: bool = False
    """Whether new values are written to the shared cache: it was queried and returned in time."""
    error: str | None = None
    """Name of the error in the shared cache, for the log."""

    def lacking(self, heads: Sequence[str], texts: Iterable[str]) -> list[str]:
        """Texts that lack a prediction by one of `heads`; without heads, all texts without an embedding."""
        if not heads:
            return list(texts)
        return [text for text in texts if any((head, text) not in self.predictions for head in heads)]

    def count(self, heads: Sequence[str], texts: Sequence[str], encodable: Collection[str]) -> CacheUsage:
        """Counts where the predictions of a request came from; without heads, where its embeddings came from.

        encodable: texts whose embedding was of use; other texts were answered without one.
        """
        reused = self.embeddings.keys() & set(encodable)
        names = heads or [EMBEDDING]
        lacking = [text for text in texts for name in names if (name, text) not in self.predictions]
        self.usage.embedding = sum(text in reused for text in lacking)
        self.usage.miss = len(lacking) - self.usage.embedding
        return self.usage


class Memory:
    """Values in this environment, at most `max_bytes` of them: the least recently used are dropped first.

    Safe for threads: a lock guards the map and its size.
    """

    def __init__(self, max_bytes: int) -> None:
        """max_bytes: most bytes of the entries; 0 keeps nothing."""
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[CacheKey, bytes] = OrderedDict()
        self.size_bytes = 0

    def get_many(self, keys: Iterable[CacheKey]) -> dict[CacheKey, bytes]:
        """Values of the keys that are present; each becomes the most recently used."""
        with self._lock:
            values = {key: self._entries[key] for key in keys if key in self._entries}
            for key in values:
                self._entries.move_to_end(key)
        return values

    def put_many(self, values: Mapping[CacheKey, bytes]) -> None:
        """Stores the values, then drops the least recently used until the rest fits."""
        with self._lock:
            for key, value in values.items():
                replaced = self._entries.pop(key, None)
                self._entries[key] = value
                self.size_bytes += _entry_bytes(value) - (0 if replaced is None else _entry_bytes(replaced))
            while self.size_bytes > self._max_bytes:
                self.size_bytes -= _entry_bytes(self._entries.popitem(last=False)[1])


def _entry_bytes(value: bytes) -> int:
    return len(value) + _ENTRY_OVERHEAD_BYTES


class PredictionCache:
    """Two levels: the environment's memory, then the shared cache for values that the memory lacks.

    Safe for threads: what belongs to one request is in its `CacheLookup` and its `Unsaved` values.
    """

    def __init__(self, l1_bytes: int, shared: "SharedCache | None" = None) -> None:
        """l1_bytes: most bytes of the memory's entries; 0 keeps nothing."""
        self._memory = Memory(l1_bytes)
        self._shared = shared

    def lookup(self, scope: CacheScope, heads: Sequence[str], texts: Sequence[str]) -> CacheLookup:
        """Looks up each text: its prediction by each head, else its embedding.

        Without heads, the embedding alone. texts: normalised, without repetitions.
        """
        result = CacheLookup({(head, text): scope.key(head, text) for text in texts for head in heads})
        values = self._memory.get_many(result.keys.values())
        result.predictions = {name: values[key] for name, key in result.keys.items() if key in values}
        result.usage.l1 = len(result.predictions)
        lacking = result.lacking(heads, texts)
        if lacking:
            keys = {text: scope.key(EMBEDDING, text) for text in lacking}
            values = self._memory.get_many(keys.values())
            result.embeddings = {text: values[key] for text, key in keys.items() if key in values}
            result.keys |= {(EMBEDDING, text): key for text, key in keys.items()}
        unknown = [text for text in lacking if text not in result.embeddings]
        if self._shared is not None and unknown:
            self._query(self._shared, result, scope, heads, unknown)
        return result

    def keep(
        self,
        lookup: CacheLookup,
        predictions: Mapping[tuple[str, str], bytes],
        embeddings: Mapping[str, bytes],
        tokens: int,
    ) -> Unsaved:
        """Stores in memory the values computed after `lookup`; returns the values for `save`.

        tokens: encoded tokens of the texts without a cached embedding.
        """
        values = {**predictions, **{(EMBEDDING, text): value for text, value in embeddings.items()}}
        fresh = {name: value for name, value in values.items() if name not in lookup.predictions}
        self._memory.put_many({lookup.keys[name]: value for name, value in fresh.items()})
        if self._shared is None:
            return {}
        texts = {text for _, text in values if text not in lookup.embeddings}
        self._shared.costs.computed([len(text) for text in texts], tokens)
        if not lookup.shareable:
            return {}
        return {lookup.keys[name]: (_kind(name[0]), value) for name, value in fresh.items()}

    def save(self, unsaved: Unsaved, time_left_s: float = math.inf) -> "Saved | None":
        """Writes the values that a request computed to the shared cache, after its answer is built.

        time_left_s: time until the reply has to be sent.
        Returns None when there was nothing to write, or when the shared cache was not queried before.
        """
        return self._shared.put_many(unsaved, time_left_s) if self._shared is not None and unsaved else None

    def set_up(self) -> None:
        """Prepares the shared cache ahead of traffic, in an environment whose init phase delays no caller."""
        if self._shared is not None:
            self._shared.set_up()

    def before_snapshot(self) -> None:
        """Closes the connections of the shared cache and forgets its credentials."""
        if self._shared is not None:
            self._shared.before_snapshot()

    def after_restore(self) -> None:
        """Renews the shared cache in an environment restored from a snapshot."""
        if self._shared is not None:
            self._shared.after_restore()

    def _query(
        self,
        shared: "SharedCache",
        lookup: CacheLookup,
        scope: CacheScope,
        heads: Sequence[str],
        texts: Sequence[str],
    ) -> None:
        """Queries the shared cache for all missing values in one lookup."""
        lacking = {
            text: [(head, text) for head in heads if (head, text) not in lookup.predictions] for text in texts
        }
        kinds: dict[CacheKey, Kind] = {}
        for text, names in lacking.items():  # keys of one text are adjacent, so half an answer is of use
            kinds |= {lookup.keys[name]: _kind(name[0]) for name in [(EMBEDDING, text), *names]}
        answer, usage = shared.get_many(kinds, [len(text) for text in texts], scope.shapes), lookup.usage
        self._memory.put_many(answer.payloads)
        for name in [name for names in lacking.values() for name in names]:
            if lookup.keys[name] in answer.payloads:
                lookup.predictions[name] = answer.payloads[lookup.keys[name]]
        still_lacking = lookup.lacking(heads, texts)
        for text in still_lacking:
            if lookup.keys[EMBEDDING, text] in answer.payloads:
                lookup.embeddings[text] = answer.payloads[lookup.keys[EMBEDDING, text]]
        usage.l2 = len(lookup.predictions) - usage.l1
        usage.expired, usage.corrupt, usage.errors = answer.expired, answer.corrupt, len(answer.failures)
        usage.breaker = shared.breaker.value
        lookup.error = answer.failures[0] if answer.failures else None
        lookup.shareable = answer.was_queried and not answer.failures
        if not answer.was_queried:
            usage.skipped = len(kinds) - len(texts) if heads else len(texts)
        elif lookup.shareable:
            unknown = [text for text in still_lacking if text not in lookup.embeddings]
            shared.costs.hit(1 - len(unknown) / len(texts))


def load_cache(settings: Settings, facts: EncoderFacts, ms_per_token: MovingAverage) -> PredictionCache:
    """Memory and shared cache as the settings say; without a table, no AWS module is imported.

    facts: the default model's encoder. ms_per_token: its speed, as measured by `TextEncoder`. Other encoders
    of the environment are assumed to be as quick when a lookup is weighed against computing.
    """
    if not settings.cache_table or settings.cache_policy == "off":
        return PredictionCache(settings.l1_cache_bytes)
    from coldframe.cache.shared import make_shared_cache

    shared = make_shared_cache(settings, facts.max_tokens * facts.max_windows, ms_per_token)
    return PredictionCache(settings.l1_cache_bytes, shared)
