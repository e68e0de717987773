"""Rows of different lengths to embeddings, in one pass: an fp16 graph with pooling inside, on a GPU."""

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from coldframe.errors import BundleCorrupt, DeviceMissing
from coldframe.model.encoder import Batch
from coldframe.model.files import read_file
from coldframe.model.tokenizer import Window
from coldframe.vectors import Vector

if TYPE_CHECKING:
    import onnxruntime as ort

CUDA = "CUDAExecutionProvider"
MAX_POSITIONS = 262_144
"""Largest pass in positions, rows × the longest row: hidden states of a full pass take 200 MB in fp16."""


class MixedEncoder:
    """An encoder whose rows may have different lengths. Safe for threads: several may run one session at
    once.

    mixes_lengths: tells the scheduler that lengths may be mixed.
    """

    mixes_lengths = True

    def __init__(
        self, graph: Path, dimension: int, provider: str, max_positions: int = MAX_POSITIONS
    ) -> None:
        """provider: execution provider of onnxruntime that has to run the graph.

        Raises DeviceMissing when onnxruntime does not run it there, BundleMissing or BundleCorrupt when the
        graph cannot be loaded.
        """
        self.dimension = dimension
        self.graph = graph.name
        self._max_positions = max_positions
        self._session = _open(graph, provider)

    def encode(self, rows: Sequence[Window]) -> list[Vector]:
        """The embedding (d,) of each row, of length 1.

        One pass, unless padding would make it larger than `max_positions`.
        """
        lengths = [len(row) for row in rows]
        if len(rows) * max(lengths, default=0) <= self._max_positions:
            return self._encode(rows, lengths)
        embeddings: dict[int, Vector] = {}
        for batch in plan_mixed(lengths, self._max_positions):
            rows_embeddings = self._encode([rows[row] for row in batch], [lengths[row] for row in batch])
            embeddings |= zip(batch, rows_embeddings, strict=True)
        return [embeddings[row] for row in range(len(rows))]

    def _encode(self, rows: Sequence[Window], lengths: Sequence[int]) -> list[Vector]:
        if not rows:
            return []
        mask = np.arange(max(lengths)) < np.array(lengths)[:, None]  # (B, T)
        ids = np.zeros(mask.shape, dtype=np.int32)
        ids[mask] = np.fromiter(chain.from_iterable(rows), np.int32, sum(lengths))
        binding = self._session.io_binding()
        binding.bind_cpu_input("input_ids", ids)
        binding.bind_cpu_input("attention_mask", mask.astype(np.int32))
        binding.bind_output("embedding", "cpu")
        self._session.run_with_iobinding(binding)
        embeddings = binding.get_outputs()[0].numpy()  # (B, d)
        return [row.tobytes() for row in embeddings]


def plan_mixed(lengths: Sequence[int], max_positions: int) -> list[Batch]:
    """Batches of rows of several lengths that cover every row once, shortest rows first.

    lengths: tokens of each row.
    A batch has at most `max_positions` positions, its rows × its longest; a longer row is a batch of its own.
    """
    batches: list[Batch] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batches and (len(batches[-1]) + 1) * lengths[row] <= max_positions:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


def _open(graph: Path, provider: str) -> "ort.InferenceSession":
    # As in coldframe.model.encoder: official packages report usage unless this is set before the import.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime as ort

    read_file(graph.parent, graph.name)  # onnxruntime's own error would not say what to do
    options = ort.SessionOptions()
    options.log_severity_level = 3  # shape nodes run on the CPU: each start would warn of it
    if provider not in ort.get_available_providers():
        raise DeviceMissing(_not_run_by(graph, provider, "this package of onnxruntime does not have it"))
    try:
        session = ort.InferenceSession(str(graph), options, providers=[provider])
    except Exception as exc:  # onnxruntime's errors share no public base class
        raise BundleCorrupt(f"{graph.name} cannot be loaded: {exc}. Run `coldframe build --gpu`.") from exc
    if (actual := session.get_providers()[0]) != provider:  # onnxruntime fell back with a mere warning
        raise DeviceMissing(_not_run_by(graph, provider, f"it took {actual}"))
    return session


def _not_run_by(graph: Path, provider: str, reason: str) -> str:
    return (
        f"onnxruntime cannot run {graph.name} by {provider}: {reason}. Install onnxruntime-gpu and libraries"
        " of functions/server/gpu-requirements.txt, and give the container NVIDIA's driver by `--gpus all`."
    )
