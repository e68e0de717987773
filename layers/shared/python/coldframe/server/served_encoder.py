"""The encoder that requests use, for the check of golden vectors."""

from collections.abc import Sequence

from coldframe.model.bundle import EncoderFacts
from coldframe.model.model import TextEncoder
from coldframe.model.tokenizer import Window
from coldframe.timing import NO_DEADLINE
from coldframe.vectors import Vector


class ServedEncoder:
    """Rows in, embeddings out, through the shared passes."""

    def __init__(self, encoder: TextEncoder, facts: EncoderFacts) -> None:
        self.dimension = facts.dimension
        self._encoder = encoder

    def encode(self, rows: Sequence[Window]) -> list[Vector]:
        """The embedding (d,) of each row; without a deadline none is missing."""
        vectors = self._encoder.embed([[row] for row in rows], NO_DEADLINE).vectors
        return [vector for vector in vectors if vector is not None]
