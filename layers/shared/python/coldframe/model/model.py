"""What needs numpy and onnxruntime: the encoder and its heads, over vectors as bytes.

Nothing imports this module before an environment needs it; a text that the
estimator is sure of has its answer by then.
"""

import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coldframe.config import DEFAULT_BATCH_TOKENS, Settings
from coldframe.model.budget import measure_budget
from coldframe.model.bundle import Manifest, load_golden
from coldframe.model.encoder import Embeddings, Encoder, RowEncoder, check_golden, plan_batches, pool_windows
from coldframe.model.heads import Head, Probabilities, load_head
from coldframe.model.tokenizer import TextWindows, Window
from coldframe.timing import Clock, Deadline, MovingAverage
from coldframe.vectors import Vector


class Embedded(NamedTuple):
    """The embedding of each text, and what they took. None: there was no time for that text."""

    vectors: list[Vector | None]
    tokens: int
    windows: int
    batches: int


class Model:
    """An encoder and the heads trained on it, both loaded.

    Safe for threads: encoder and heads are only read. Two threads that are the first to ask for a head
    may both read it, and get the same.
    """

    def __init__(
        self,
        encoder: RowEncoder,
        read_head: Callable[[str], Head],
        max_batch_tokens: int,
        ms_per_token: MovingAverage,
        clock: Clock = time.perf_counter,
    ) -> None:
        """ms_per_token: what a pass takes; measured here with each pass, and read by the cache's policy."""
        self._encoder = encoder
        self._head = functools.cache(read_head)  # a head is read when it is first asked for
        self._max_batch_tokens = max_batch_tokens
        self._clock = clock
        self._ms_per_token = ms_per_token

    def expected_s(self, tokens: int) -> float:
        """How long it will probably take to encode this many tokens, by what it took lately."""
        return tokens * self._ms_per_token.value / 1e3

    def embed(self, texts: Sequence[Sequence[Window]], deadline: Deadline) -> Embedded:
        """Embeddings of texts from their windows, short ones first, as far as the time goes."""
        rows = [window for text in texts for window in text]
        lengths = [len(row) for row in rows]
        embeddings = np.empty((len(rows), self._encoder.dimension), dtype=np.float32)
        encoded = np.zeros(len(rows), dtype=bool)
        batches = 0
        for batch in plan_batches(lengths, self._max_batch_tokens):
            tokens = sum(lengths[row] for row in batch)
            if self.expected_s(tokens) > deadline.remaining_s():
                break  # the next ones are longer
            started_s = self._clock()
            embeddings[batch] = self._encoder.encode([rows[row] for row in batch])
            self._ms_per_token.add((self._clock() - started_s) * 1e3 / tokens)
            encoded[batch] = True
            batches += 1
        return Embedded(
            _pool_complete(embeddings, lengths, [len(text) for text in texts], encoded),
            tokens=int(np.dot(lengths, encoded)),
            windows=int(encoded.sum()),
            batches=batches,
        )

    def classify(
        self, embeddings: Mapping[str, Vector], heads: Iterable[str]
    ) -> dict[str, dict[str, Vector]]:
        """Probabilities (k,) by each of `heads`, under the names that the embeddings have."""
        matrix = to_matrix(list(embeddings.values()))
        answers = {head: self._head(head).predict(matrix) for head in dict.fromkeys(heads)}
        return {
            head: {name: row.tobytes() for name, row in zip(embeddings, rows, strict=True)}
            for head, rows in answers.items()
        }

    def probabilities(self, embeddings: Embeddings, head: str) -> Probabilities:
        """Probabilities (n, k) by one head for embeddings (n, d)."""
        return self._head(head).predict(embeddings)

    def read_heads(self, heads: Sequence[str]) -> None:
        """Reads heads before they are asked for."""
        for head in heads:
            self._head(head)

    def measure_budget(self) -> None:
        """Sets the token budget of a pass to what is quickest here; answers stay the same, to the bit."""
        self._max_batch_tokens = measure_budget(self._encoder.encode, self._max_batch_tokens, self._clock)


def _pool_complete(
    embeddings: Embeddings, tokens: Sequence[int], counts: Sequence[int], encoded: NDArray[np.bool_]
) -> list[Vector | None]:
    """One vector per text, None for those of which not every window is encoded."""
    owner = np.repeat(np.arange(len(counts)), counts)  # (windows,): the text of each
    whole = np.bincount(owner, encoded, len(counts)) == counts
    kept = np.flatnonzero(whole[owner])
    pooled = iter(
        pool_windows(
            embeddings[kept],
            np.asarray(tokens)[kept].tolist(),
            [count for count, is_whole in zip(counts, whole, strict=True) if is_whole],
        )
    )
    return [next(pooled).tobytes() if is_whole else None for is_whole in whole]


def to_matrix(vectors: Sequence[Vector]) -> Embeddings:
    """float32 (n, d) of n vectors of d values each."""
    return np.frombuffer(b"".join(vectors), dtype=np.float32).reshape(len(vectors), -1 if vectors else 0)


def load_model(
    settings: Settings, manifest: Manifest, windows: TextWindows, ms_per_token: MovingAverage
) -> Model:
    """The model of the bundle in `settings.model_dir`.

    Raises a BundleError when it cannot be served on this machine.
    """
    folder = settings.model_dir
    encoder = Encoder(folder, manifest.encoder, settings.threads)
    if settings.verify_at_init:
        check_golden(encoder, windows, load_golden(folder), at_most=1)
    budget = settings.max_batch_tokens or DEFAULT_BATCH_TOKENS
    model = Model(encoder, functools.partial(load_head, folder), budget, ms_per_token)
    model.read_heads([manifest.estimator.partner])
    return model
