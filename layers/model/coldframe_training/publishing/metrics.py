"""Metrics that training writes for the manifest: `metrics.json` beside the heads."""

from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from coldframe.model.bundle import EnsembleFacts, HeadFacts
from coldframe.schemas import Figures
from coldframe_training.files.json_files import write_json
from coldframe_training.files.paths import METRICS


class HeadMetrics(msgspec.Struct, frozen=True):
    """Accuracies of the heads, the best of them by validation, and figures of the whole model.

    ensemble: weights of its members, and its accuracies.
    encoder_graph: digest of the encoder that the heads were trained on.
    """

    labels: list[str]
    best_head: str
    encoder_graph: str
    heads: dict[str, HeadFacts]
    figures: Figures | None = None
    ensemble: EnsembleFacts | UnsetType = UNSET


def read_metrics(folder: Path) -> HeadMetrics:
    """The metrics of the trained heads in `folder`."""
    return msgspec.json.decode((folder / METRICS).read_bytes(), type=HeadMetrics)


def write_metrics(folder: Path, metrics: HeadMetrics) -> None:
    """Write the metrics of the trained heads into `folder`, over older ones."""
    write_json(folder / METRICS, metrics)
