"""Text embeddings by the served encoder: matrices, and the store that spares a second run."""
