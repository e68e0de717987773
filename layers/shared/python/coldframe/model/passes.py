"""Encoder that runs several forward passes of one request at once, where there are several processors."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from coldframe.model.encoder import Batch, Embedded, RowEncoder, TextEncoder, embedded, plan_batches
from coldframe.model.tokenizer import Window
from coldframe.timing import Deadline, MovingAverage
from coldframe.vectors import Vector


class ParallelEncoder(TextEncoder):
    """Runs up to `passes` forward passes at once. The embeddings are those of `TextEncoder`, to the bit."""

    def __init__(
        self, encoder: RowEncoder, max_batch_tokens: int, ms_per_token: MovingAverage, passes: int
    ) -> None:
        super().__init__(encoder, max_batch_tokens, ms_per_token)
        self._threads = ThreadPoolExecutor(passes, "passes")

    def embed(
        self,
        texts: Sequence[Sequence[Window]],
        deadline: Deadline,
        later: Sequence[Sequence[Window]] = (),
    ) -> Embedded:
        rows = [window for text in texts for window in text]
        embeddings: list[Vector | None] = [None] * len(rows)
        embed_one = super().embed

        def run(batch: Batch) -> int:
            """Encodes the rows of a batch, as texts of one window. Returns the passes run: one or none."""
            part = embed_one([[rows[row]] for row in batch], deadline)
            for row, embedding in zip(batch, part.vectors, strict=True):
                embeddings[row] = embedding
            return part.batches

        batches = plan_batches([len(row) for row in rows], self.max_batch_tokens)
        return embedded(texts, embeddings, sum(self._threads.map(run, batches)))
