"""The prediction cache: what is known of a text, in this environment's memory or in the shared cache.

Both hold predictions by head, and embeddings: a new head on a known text costs no
encoding. Texts are never stored.
"""

import hashlib
import math
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec import Struct, field

from coldframe.api.schemas import CacheUsage
from coldframe.cache.values import Kind, Shapes
from coldframe.config import Settings
from coldframe.model.bundle import EncoderFacts
from coldframe.model.files import AUTO
from coldframe.timing import MovingAverage

if TYPE_CHECKING:
    from coldframe.cache.shared import Saved, SharedCache

CacheKey: TypeAlias = bytes
"""Digest of a text, a version and what is known of the text."""

Unsaved: TypeAlias = Mapping[CacheKey, tuple[Kind, bytes]]
"""What a request computed and the shared cache lacks. It travels with the request's answer."""

EMBEDDING = "embedding"
"""Stands in a key where a prediction has its head."""

_KINDS = {AUTO: Kind.AUTO, EMBEDDING: Kind.EMBEDDING}
_KEY_BYTES = 16
_ENTRY_OVERHEAD_BYTES = 250  # key, value header and dictionary slots in CPython, rounded up
_LAYOUT = b"layout 4"
"""Part of every key: values of another layout are never found. 3: predictions end with a score."""


class CacheScope(NamedTuple):
    """Whose values are looked up: predictions of one version of a model, embeddings of one of its encoder.

    So a model that is trained again finds the embeddings of the one before, and models of one encoder share
    theirs.
    """

    model: str
    encoder: str
    shapes: Shapes

    def key(self, name: str, text: str) -> "CacheKey":
        """The key of a prediction by the head `name`, or of the embedding."""
        return cache_key(self.encoder if name == EMBEDDING else self.model, name, text)


def cache_key(version: str, name: str, text: str) -> CacheKey:
    """The key of one value. It depends on these three, and on nothing else."""
    digest = hashlib.blake2b(digest_size=_KEY_BYTES, person=_LAYOUT)
    for part in (version, name, text):
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big"))  # no two triples share a byte string
        digest.update(encoded)
    return digest.digest()


def _kind(name: str) -> Kind:
    """The kind of the values under a head's name, or under `EMBEDDING`."""
    return _KINDS.get(name, Kind.PREDICTION)


class CacheLookup(Struct):
    """What the cache knew of the texts of one request. Values are bytes of float32, as `Kind` says."""

    keys: dict[tuple[str, str], CacheKey] = field(default_factory=dict)
    predictions: dict[tuple[str, str], bytes] = field(default_factory=dict)
    """By (head, text)."""
    embeddings: dict[str, bytes] = field(default_factory=dict)
    """By text, for texts that lack a prediction."""
    usage: CacheUsage = field(default_factory=lambda: CacheUsage(l1=0, l2=0, embedding=0, miss=0))
    shareable: bool = False
    """Whether what is computed now is written to the shared cache: it was queried and returned in time."""
    error: str | None = None
    """Name of what went wrong in the shared cache, for the log."""

    def lacking(self, heads: Sequence[str], texts: Iterable[str]) -> list[str]:
        """The texts that lack a prediction by one of `heads`; without heads, all of them."""
        if not heads:
            return list(texts)
        return [text for text in texts if any((head, text) not in self.predictions for head in heads)]

    def count(self, heads: Sequence[str], texts: Sequence[str], encodable: Collection[str]) -> CacheUsage:
        """Where the predictions of a request came from, or without heads its embeddings.

        encodable: texts whose embedding was of use; others were answered without one.
        """
        reused = self.embeddings.keys() & set(encodable)
        wanted = heads or [EMBEDDING]
        lacking = [text for text in texts for name in wanted if (name, text) not in self.predictions]
        self.usage.embedding = sum(text in reused for text in lacking)
        self.usage.miss = len(lacking) - self.usage.embedding
        return self.usage


class Memory:
    """Values in this environment, at most `max_bytes` of them: the least recently used go first.

    Safe for threads: a lock guards the map and its size.
    """

    def __init__(self, max_bytes: int) -> None:
        """max_bytes: bound on what the entries occupy; 0 keeps nothing."""
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[CacheKey, bytes] = OrderedDict()
        self.size_bytes = 0

    def get_many(self, keys: Iterable[CacheKey]) -> dict[CacheKey, bytes]:
        """Values of the keys that are there; each of them is now the most recently used."""
        with self._lock:
            found = {key: self._entries[key] for key in keys if key in self._entries}
            for key in found:
                self._entries.move_to_end(key)
        return found

    def put_many(self, values: Mapping[CacheKey, bytes]) -> None:
        """Keeps the values, then forgets the least recently used until they fit."""
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
    """The environment's memory, then the shared cache for what is missing there.

    Safe for threads: what belongs to one request is in its `CacheLookup` and its `Unsaved` values.
    """

    def __init__(self, l1_bytes: int, shared: "SharedCache | None" = None) -> None:
        """l1_bytes: bound on what the memory occupies; 0 keeps nothing."""
        self._memory = Memory(l1_bytes)
        self._shared = shared

    def lookup(self, scope: CacheScope, heads: Sequence[str], texts: Sequence[str]) -> CacheLookup:
        """What is known of each text: its prediction by each head, else its embedding.

        Without heads, its embedding. texts: normalised, each once.
        """
        known = CacheLookup({(head, text): scope.key(head, text) for text in texts for head in heads})
        found = self._memory.get_many(known.keys.values())
        known.predictions = {name: found[key] for name, key in known.keys.items() if key in found}
        known.usage.l1 = len(known.predictions)
        lacking = known.lacking(heads, texts)
        if lacking:
            keys = {text: scope.key(EMBEDDING, text) for text in lacking}
            found = self._memory.get_many(keys.values())
            known.embeddings = {text: found[key] for text, key in keys.items() if key in found}
            known.keys |= {(EMBEDDING, text): key for text, key in keys.items()}
        unknown = [text for text in lacking if text not in known.embeddings]
        if self._shared is not None and unknown:
            self._query(self._shared, known, scope, heads, unknown)
        return known

    def keep(
        self,
        known: CacheLookup,
        predictions: Mapping[tuple[str, str], bytes],
        embeddings: Mapping[str, bytes],
        tokens: int,
    ) -> Unsaved:
        """Keeps in memory what was computed after `lookup`; returns what is to be given to `save`.

        tokens: of the texts without a known embedding, as far as they were encoded.
        """
        values = {**predictions, **{(EMBEDDING, text): value for text, value in embeddings.items()}}
        fresh = {name: value for name, value in values.items() if name not in known.predictions}
        self._memory.put_many({known.keys[name]: value for name, value in fresh.items()})
        if self._shared is None:
            return {}
        texts = {text for _, text in values if text not in known.embeddings}
        self._shared.costs.computed([len(text) for text in texts], tokens)
        if not known.shareable:
            return {}
        return {known.keys[name]: (_kind(name[0]), value) for name, value in fresh.items()}

    def save(self, unsaved: Unsaved, time_left_s: float = math.inf) -> "Saved | None":
        """Writes to the shared cache what a request computed, once its answer is built.

        time_left_s: until the reply has to be on its way.
        None when there was nothing to write: what was not worth asking for is not worth keeping.
        """
        return self._shared.put_many(unsaved, time_left_s) if self._shared is not None and unsaved else None

    def set_up(self) -> None:
        """Prepares the shared cache ahead of traffic, in an environment whose init phase nobody waits for."""
        if self._shared is not None:
            self._shared.set_up()

    def before_snapshot(self) -> None:
        """Closes the connections of the shared cache and forgets its credentials."""
        if self._shared is not None:
            self._shared.before_snapshot()

    def after_restore(self) -> None:
        """Begins the shared cache anew, in an environment restored from a snapshot."""
        if self._shared is not None:
            self._shared.after_restore()

    def _query(
        self,
        shared: "SharedCache",
        known: CacheLookup,
        scope: CacheScope,
        heads: Sequence[str],
        texts: Sequence[str],
    ) -> None:
        """Asks the shared cache for what these texts lack, all in one lookup."""
        lacking = {
            text: [(head, text) for head in heads if (head, text) not in known.predictions] for text in texts
        }
        wanted: dict[CacheKey, Kind] = {}
        for text, names in lacking.items():  # a text's keys side by side: half an answer is of use
            wanted |= {known.keys[name]: _kind(name[0]) for name in [(EMBEDDING, text), *names]}
        found, usage = shared.get_many(wanted, [len(text) for text in texts], scope.shapes), known.usage
        self._memory.put_many(found.payloads)
        for name in [name for names in lacking.values() for name in names]:
            if known.keys[name] in found.payloads:
                known.predictions[name] = found.payloads[known.keys[name]]
        still_lacking = known.lacking(heads, texts)
        for text in still_lacking:
            if known.keys[EMBEDDING, text] in found.payloads:
                known.embeddings[text] = found.payloads[known.keys[EMBEDDING, text]]
        usage.l2 = len(known.predictions) - usage.l1
        usage.expired, usage.corrupt, usage.errors = found.expired, found.corrupt, len(found.failures)
        usage.breaker = shared.breaker.value
        known.error = found.failures[0] if found.failures else None
        known.shareable = found.asked and not found.failures
        if not found.asked:
            usage.skipped = len(wanted) - len(texts) if heads else len(texts)
        elif known.shareable:
            unknown = [text for text in still_lacking if text not in known.embeddings]
            shared.costs.hit(1 - len(unknown) / len(texts))


def load_cache(settings: Settings, facts: EncoderFacts, ms_per_token: MovingAverage) -> PredictionCache:
    """Memory and shared cache as the settings say; without a table, no AWS module is imported.

    facts: of the default model's encoder. ms_per_token: what it takes, as measured by `TextEncoder`. Other
    encoders of the environment are taken to be about as quick when a lookup is weighed against computing.
    """
    if not settings.cache_table or settings.cache_policy == "off":
        return PredictionCache(settings.l1_cache_bytes)
    from coldframe.cache.shared import make_shared_cache

    shared = make_shared_cache(settings, facts.max_tokens * facts.max_windows, ms_per_token)
    return PredictionCache(settings.l1_cache_bytes, shared)
