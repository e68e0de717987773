"""Loads the parts of a model: its encoder, which other models may share, and its heads."""

import functools
from pathlib import Path
from typing import NamedTuple

from coldframe.config import DEFAULT_BATCH_TOKENS, Settings
from coldframe.model.bundle import EncoderFacts, load_golden
from coldframe.model.encoder import Encoder, TextEncoder, check_golden
from coldframe.model.heads import Heads, load_centroids, load_head
from coldframe.model.tokenizer import TextWindows
from coldframe.timing import MovingAverage


class Model(NamedTuple):
    """Parts of a model besides the estimator: an encoder, which other models may share, and heads."""

    encoder: TextEncoder
    heads: Heads


def load_encoder(
    settings: Settings, folder: Path, facts: EncoderFacts, windows: TextWindows, ms_per_token: MovingAverage
) -> TextEncoder:
    """The encoder in `folder`. Raises a BundleError when it cannot be served on this machine."""
    encoder = Encoder(folder, facts, settings.threads)
    if settings.verify_at_init:
        check_golden(encoder, windows, load_golden(folder), at_most=1)
    max_batch_tokens = settings.max_batch_tokens or DEFAULT_BATCH_TOKENS
    if settings.passes == 1:
        return TextEncoder(encoder, max_batch_tokens, ms_per_token)
    from coldframe.model.passes import ParallelEncoder  # an environment with one processor does not import it

    return ParallelEncoder(encoder, max_batch_tokens, ms_per_token, settings.passes)


def load_heads(folder: Path, partner: str) -> Heads:
    """The heads of the model in `folder`, with the estimator's partner read at once.

    Raises a BundleError when the partner cannot be used.
    """
    heads = Heads(functools.partial(load_head, folder), load_centroids(folder))
    heads.read(partner)
    return heads
