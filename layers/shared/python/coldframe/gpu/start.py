"""Which of an encoder's graphs is served: the first one that computes what fp32 computes."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from coldframe.errors import BundleError, EncoderDrift
from coldframe.gpu.files import PACKED, PADDED
from coldframe.model.bundle import Golden
from coldframe.model.encoder import RowEncoder
from coldframe.model.tokenizer import TextWindows
from coldframe.timing import log_line
from coldframe.vectors import cosine

GRAPHS = (PACKED, PADDED)
"""In the order of their speed."""


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

    log: gets a line of JSON for each graph that does not, and one for the graph that is served.
    Raises EncoderDrift when none does, with what is wrong with each.
    """
    refused: dict[str, str] = {}
    for graph in graphs:
        try:
            encoder = open_graph(graph)
            lowest = check_together(encoder, windows, golden)
        except BundleError as exc:
            refused[graph] = str(exc)
            log(log_line(event="gpu-graph-refused", graph=graph, because=str(exc)))
        else:
            log(log_line(event="gpu-graph", graph=graph, lowest_cosine=round(lowest, 6)))
            return encoder
    reasons = " ".join(f"{graph}: {reason}" for graph, reason in refused.items())
    raise EncoderDrift(f"No graph of the encoder can be served on this GPU. {reasons}")


def check_together(encoder: RowEncoder, windows: TextWindows, golden: Golden) -> float:
    """The lowest cosine of golden texts' embeddings to the reference, all encoded in one pass.

    In one pass, since here a row's neighbours could change it. Raises EncoderDrift when it is too low, and
    when the graph cannot be run.
    """
    rows = [windows.cut([vector.text])[0][0] for vector in golden.vectors]
    try:
        found = encoder.encode(rows)
    except Exception as exc:  # onnxruntime's errors share no public base class
        raise EncoderDrift(f"The graph fails on the golden texts: {exc}") from exc
    cosines = [cosine(row, vector.embedding) for row, vector in zip(found, golden.vectors, strict=True)]
    lowest = min(cosines)
    if not all(found >= golden.min_cosine for found in cosines):  # NaN is not
        raise EncoderDrift(
            f"The embedding of a golden text has cosine {lowest:.4f} to the reference; expected at least"
            f" {golden.min_cosine}."
        )
    return lowest
