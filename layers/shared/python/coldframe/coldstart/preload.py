"""Opens the encoder's graph in a thread while other modules of an environment are imported.

onnxruntime works without the interpreter's lock: on two processors this saves a fifth of a cold start.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from coldframe import setting_facts as facts
from coldframe.graphs.runtime import open_early
from coldframe.model.files import ENCODER, ENCODERS, encoder_graph

_FOR_GPUS = "-gpu"


def preload_encoder(environ: Mapping[str, str]) -> None:
    """Starts to open the graph that the model will need, if it can be found without reading settings.

    It can where there is one encoder for CPUs. The model meets and reports any error again.
    """
    device, threads = environ.get("COLDFRAME_DEVICE"), environ.get("COLDFRAME_THREADS")
    if (device or "cpu", threads or "1") != ("cpu", "1"):  # an empty variable keeps its default
        return
    folder = Path(environ.get("COLDFRAME_MODEL_DIR") or facts.MODEL_DIR, ENCODERS)
    try:
        names = [name for name in os.listdir(folder) if not name.endswith(_FOR_GPUS)]  # noqa: PTH208  # quicker
    except OSError:
        return
    if len(names) == 1:
        open_early(encoder_graph(folder / names[0] / ENCODER, threads=1))
