"""The prediction cache: what is known of a text, in this environment (level 1) or in the table (level 2).

Both levels hold predictions by head, and embeddings: a new head on a known text
costs no encoding. Texts are never stored.
"""

import hashlib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from coldframe.api.schemas import CacheUsage
from coldframe.cache.lru import LruCache
from coldframe.cache.values import Kind
from coldframe.config import Settings
from coldframe.model.bundle import Manifest

if TYPE_CHECKING:
    from coldframe.cache.shared import Saved, SecondLevel

CacheKey: TypeAlias = bytes
"""Digest of text, bundle version and head."""

EMBEDDING = "embedding"
"""Stands in a key where a prediction has its head."""

_KEY_BYTES = 16
_KEPT_FOR_THE_REPLY_S = 0.25


def cache_key(version: str, head: str, text: str) -> CacheKey:
    """The key of one prediction. It depends on these three, and on nothing else."""
    digest = hashlib.blake2b(digest_size=_KEY_BYTES)
    for part in (version, head, text):
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big"))  # no two triples share a byte string
        digest.update(encoded)
    return digest.digest()


class Known(Struct):
    """What the cache knew of the texts of a request. Values are bytes of float32."""

    keys: dict[tuple[str, str], CacheKey] = field(default_factory=dict)
    predictions: dict[tuple[str, str], bytes] = field(default_factory=dict)
    """By (head, text)."""
    embeddings: dict[str, bytes] = field(default_factory=dict)
    """By text, for texts that lack a prediction."""
    usage: CacheUsage = field(default_factory=lambda: CacheUsage(l1=0, l2=0, embedding=0, miss=0))
    shareable: bool = False
    """Whether what is computed now goes to level 2: it was asked, and it answered."""
    error: str | None = None
    """Name of what went wrong in level 2, for the log."""

    def lacks(self, heads: Sequence[str], text: str) -> bool:
        """Whether this text's embedding is needed: for a head, or because there is none."""
        return not heads or any((head, text) not in self.predictions for head in heads)

    def count(self, heads: Sequence[str], texts: Sequence[str], encodable: Collection[str]) -> CacheUsage:
        """Where the predictions of a request came from, or without heads its embeddings.

        encodable: texts whose embedding was of use; others got their answer without.
        """
        reused = self.embeddings.keys() & set(encodable)
        wanted = heads or [EMBEDDING]
        lacking = [text for text in texts for name in wanted if (name, text) not in self.predictions]
        self.usage.embedding = sum(text in reused for text in lacking)
        self.usage.miss = len(lacking) - self.usage.embedding
        return self.usage


class PredictionCache:
    """Both levels, in their order: memory, then the table for what is missing there."""

    def __init__(self, l1_bytes: int, second: "SecondLevel | None" = None) -> None:
        """l1_bytes: bound on what level 1 occupies; 0 keeps nothing."""
        self._first = LruCache(l1_bytes)
        self._second = second
        self._unsaved: dict[CacheKey, tuple[Kind, bytes]] = {}

    def lookup(self, version: str, heads: Sequence[str], texts: Sequence[str]) -> Known:
        """What is known of each text: its prediction by each head, else its embedding.

        Without heads, its embedding. texts: normalised, each once.
        """
        known = Known({(head, text): cache_key(version, head, text) for text in texts for head in heads})
        first = self._first.get_many(known.keys.values())
        known.predictions = {name: first[key] for name, key in known.keys.items() if key in first}
        known.usage.l1 = len(known.predictions)
        lacking = [text for text in texts if known.lacks(heads, text)]
        keys = {text: cache_key(version, EMBEDDING, text) for text in lacking}
        first = self._first.get_many(keys.values())
        known.embeddings = {text: first[key] for text, key in keys.items() if key in first}
        known.keys |= {(EMBEDDING, text): key for text, key in keys.items()}
        unknown = [text for text in lacking if text not in known.embeddings]
        if self._second is not None and unknown:
            self._ask(self._second, known, heads, unknown)
        return known

    def keep(
        self,
        known: Known,
        predictions: Mapping[tuple[str, str], bytes],
        embeddings: Mapping[str, bytes],
        tokens: int,
        spent_ms: float,
    ) -> None:
        """Keeps what was computed after `lookup`: in level 1 now, in level 2 at `save`.

        tokens, spent_ms: what the texts without a known embedding took.
        """
        names = {name: (Kind.PREDICTION, value) for name, value in predictions.items()}
        names |= {(EMBEDDING, text): (Kind.EMBEDDING, value) for text, value in embeddings.items()}
        fresh = {known.keys[name]: value for name, value in names.items() if name not in known.predictions}
        self._first.put_many({key: payload for key, (_, payload) in fresh.items()})
        if self._second is not None:
            texts = {text for _, text in predictions} | embeddings.keys()
            self._second.costs.computed(
                [len(text) for text in texts if text not in known.embeddings], tokens, spent_ms
            )
            self._unsaved = fresh if known.shareable else {}

    def save(self, time_left_s: Callable[[], float] = lambda: math.inf) -> "Saved | None":
        """Writes to level 2 what the last request computed, once its answer is built.

        time_left_s: until the platform stops the invocation; the reply needs some of it.
        None when there was nothing to write: what was not worth asking for is not worth keeping.
        """
        unsaved, self._unsaved = self._unsaved, {}
        if self._second is None or not unsaved:
            return None
        return self._second.put_many(unsaved, time_left_s() - _KEPT_FOR_THE_REPLY_S)

    def set_up(self) -> None:
        """Prepares level 2 ahead of traffic, in an environment whose init phase nobody waits for."""
        if self._second is not None:
            self._second.set_up()

    def before_snapshot(self) -> None:
        """Closes the connections of level 2 and forgets its credentials."""
        if self._second is not None:
            self._second.before_snapshot()

    def after_restore(self) -> None:
        """Begins level 2 anew, in an environment restored from a snapshot."""
        if self._second is not None:
            self._second.after_restore()

    def _ask(self, second: "SecondLevel", known: Known, heads: Sequence[str], texts: Sequence[str]) -> None:
        """Asks level 2 for what these texts lack, all in one lookup."""
        lacking = {
            text: [(head, text) for head in heads if (head, text) not in known.predictions] for text in texts
        }
        wanted: dict[CacheKey, Kind] = {}
        for text, names in lacking.items():  # a text's keys side by side: half an answer is of use
            wanted[known.keys[EMBEDDING, text]] = Kind.EMBEDDING
            wanted |= {known.keys[name]: Kind.PREDICTION for name in names}
        found = second.get_many(wanted, [len(text) for text in texts])
        self._first.put_many(found.payloads)
        usage = known.usage
        for text, names in lacking.items():
            values = {name: found.payloads.get(known.keys[name]) for name in names}
            known.predictions |= {name: value for name, value in values.items() if value is not None}
            embedding = found.payloads.get(known.keys[EMBEDDING, text])
            if embedding is not None and known.lacks(heads, text):
                known.embeddings[text] = embedding
        usage.l2 = len(known.predictions) - usage.l1
        usage.expired, usage.corrupt, usage.errors = found.expired, found.corrupt, len(found.failures)
        usage.breaker = second.breaker.value
        if not found.asked:
            usage.skipped = len(wanted) - len(texts) if heads else len(texts)
        elif not found.failures:
            known.shareable = True
            unknown = [text for text in texts if known.lacks(heads, text) and text not in known.embeddings]
            second.costs.hit(1 - len(unknown) / len(texts))
        known.error = found.failures[0] if found.failures else None


def load_cache(settings: Settings, manifest: Manifest) -> PredictionCache:
    """Both levels as the settings say; without a table, level 1 alone and no AWS module imported."""
    if not settings.cache_table or settings.cache_policy == "off":
        return PredictionCache(settings.l1_cache_bytes)
    from coldframe.cache.shared import make_second_level

    facts = manifest.encoder
    second = make_second_level(
        settings,
        max_text_tokens=facts.max_tokens * facts.max_windows,
        payload_bytes={
            Kind.PREDICTION: {4 * len(manifest.labels), 4 * len(manifest.labels) + 4},  # `auto` says by whom
            Kind.EMBEDDING: {4 * facts.dimension},
        },
    )
    return PredictionCache(settings.l1_cache_bytes, second)
