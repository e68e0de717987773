"""The encoder's graph, opened by a thread while the rest of an environment is imported.

It is imported before any other module, and imports little itself.
"""

from __future__ import annotations

import os

from coldframe import setting_facts as facts
from coldframe.graphs.early import open_early

TYPE_CHECKING = False  # `typing` is imported later
if TYPE_CHECKING:
    from collections.abc import Mapping

    from coldframe.graphs.graph import Graph, GraphFile

_FOR_GPUS = "-gpu"


def preload_encoder(environ: Mapping[str, str]) -> None:
    """Begin to open the encoder's graph, if it is known without reading settings.

    It is known where there is one encoder for CPUs. The model meets every error again, and reports it.
    """
    device, threads = environ.get("COLDFRAME_DEVICE"), environ.get("COLDFRAME_THREADS")
    if (device or "cpu", threads or "1") != ("cpu", "1"):  # an empty setting has its default
        return
    folder = f"{environ.get('COLDFRAME_MODEL_DIR') or facts.MODEL_DIR}/encoders"
    try:
        names = [name for name in os.listdir(folder) if not name.endswith(_FOR_GPUS)]  # noqa: PTH208  # quicker
    except OSError:
        return
    if len(names) == 1:
        path = f"{folder}/{names[0]}/encoder.ort"
        open_early(path, lambda: _open(path))


def _open(path: str) -> tuple[GraphFile, Graph]:
    from pathlib import Path

    from coldframe.graphs.runtime import open_now
    from coldframe.model.files import encoder_graph

    file = encoder_graph(Path(path), threads=1)
    return file, open_now(file)
