"""Choice of an encoder's graph: the first one whose embeddings match fp32."""

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from coldframe.errors import BundleError, EncoderDrift
from coldframe.gpu.files import PACKED, PADDED
from coldframe.model.bundle import Golden
from coldframe.model.encoder import RowEncoder
from coldframe.model.tokenizer import TextWindows
from coldframe.timing import log_line, since_ms
from coldframe.vectors import cosine

GRAPHS = (PACKED, PADDED)
"""Names of graph files, fastest first."""


Opener: TypeAlias = Callable[[str], RowEncoder]
"""Opens a graph by the name of its file. Raises a BundleError."""


def start_encoder(
    open_graph: Opener,
    windows: TextWindows,
    golden: Golden,
    log: Callable[[str], object],
    graphs: Sequence[str] = GRAPHS,
) -> RowEncoder:
    """The first of `graphs` that opens and reproduces the golden vectors.

    log: receives a line of JSON for each graph that fails, and one for the graph that is served.
    Raises EncoderDrift when all fail, with the reason for each.
    """
    refused: dict[str, str] = {}
    for graph in graphs:
        started_s = time.monotonic()
        try:
            encoder = open_graph(graph)
            lowest = check_together(encoder, windows, golden)
        except BundleError as exc:
            refused[graph] = str(exc)
            log(
                log_line(
                    event="gpu-graph-refused", graph=graph, because=str(exc), duration_ms=since_ms(started_s)
                )
            )
        else:
            facts = {"graph": graph, "lowest_cosine": round(lowest, 6)}
            log(log_line(event="gpu-graph", **facts, duration_ms=since_ms(started_s)))
            return encoder
    reasons = " ".join(f"{graph}: {reason}" for graph, reason in refused.items())
    raise EncoderDrift(
        f"No graph of the encoder can be served on this GPU. {reasons} Run `coldframe build --gpu`."
    )


def check_together(encoder: RowEncoder, windows: TextWindows, golden: Golden) -> float:
    """The lowest cosine of golden texts' embeddings to the reference, all encoded in one pass.

    One pass, since a row's neighbours could change it. Raises EncoderDrift when the cosine is too low, and
    when the graph fails.
    """
    rows = [windows.cut([vector.text])[0][0] for vector in golden.vectors]
    try:
        embeddings = encoder.encode(rows)
    except Exception as exc:  # onnxruntime's errors share no public base class
        raise EncoderDrift(f"The graph fails on the golden texts: {exc}") from exc
    cosines = [cosine(row, vector.embedding) for row, vector in zip(embeddings, golden.vectors, strict=True)]
    lowest = min(cosines)
    if not all(value >= golden.min_cosine for value in cosines):  # NaN fails the comparison
        raise EncoderDrift(
            f"The embedding of a golden text has cosine {lowest:.4f} to the reference. Expected at least"
            f" {golden.min_cosine}."
        )
    return lowest
