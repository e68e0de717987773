"""The encoder that requests get, as what golden vectors are checked with."""

from collections.abc import Sequence

import numpy as np

from coldframe.model.bundle import EncoderFacts
from coldframe.model.encoder import Embeddings
from coldframe.model.model import TextEncoder, to_matrix
from coldframe.model.tokenizer import Window
from coldframe.timing import NO_DEADLINE


class ServedEncoder:
    """Rows in, embeddings out, by the road that requests take."""

    def __init__(self, encoder: TextEncoder, facts: EncoderFacts) -> None:
        self.dimension = facts.dimension
        self._encoder = encoder

    def encode(self, rows: Sequence[Window]) -> Embeddings:
        """Embeddings of rows: float32 (len(rows), d)."""
        vectors = self._encoder.embed([[row] for row in rows], NO_DEADLINE).vectors
        missing = np.full(self.dimension, np.nan, dtype=np.float32).tobytes()
        return to_matrix([missing if vector is None else vector for vector in vectors])
