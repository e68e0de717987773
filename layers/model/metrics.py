"""What training leaves for the manifest: `metrics.json` beside the heads."""

from pathlib import Path

import msgspec

from coldframe.model.bundle import HeadFacts
from layers.model.paths import METRICS


class HeadMetrics(msgspec.Struct, frozen=True):
    """Accuracies of the heads, and the best of them by validation.

    encoder_graph: digest of the encoder that the heads were trained on.
    """

    labels: list[str]
    best_head: str
    encoder_graph: str
    heads: dict[str, HeadFacts]


def read_metrics(folder: Path) -> HeadMetrics:
    """The metrics of the trained heads in `folder`."""
    return msgspec.json.decode((folder / METRICS).read_bytes(), type=HeadMetrics)
