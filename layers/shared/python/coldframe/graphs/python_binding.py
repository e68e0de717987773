"""Graphs through onnxruntime's Python binding, for wheels without the C library (macOS, Windows)."""

import os
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from coldframe.graphs.graph import SESSION_SETTINGS, GraphError, GraphFile, Tensor

# onnxruntime's official packages report usage to their maker unless this is set
# before the import: https://github.com/microsoft/onnxruntime/pull/27379
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime as ort


class BoundGraph:
    """A graph in a session of the Python binding. Safe for threads."""

    def __init__(self, file: GraphFile) -> None:
        """Raises GraphError when the file is not a graph that this onnxruntime can run."""
        options = ort.SessionOptions()
        options.intra_op_num_threads = file.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # errors are raised, and need no second line in the log
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        for name, value in SESSION_SETTINGS.items():
            options.add_session_config_entry(name, value)
        try:
            self._session = ort.InferenceSession(str(file.path), options, providers=["CPUExecutionProvider"])
        except Exception as exc:  # onnxruntime's errors share no public base class
            raise GraphError(str(exc)) from exc
        self._output, self._kind = file.output, file.kind
        self._constants = {name: _array_of(tensor) for name, tensor in file.constants.items()}

    def run(self, inputs: Mapping[str, Tensor], shape: tuple[int, ...]) -> bytes:
        """The values of the output, which has this shape. Raises GraphError."""
        arrays = {name: _array_of(tensor) for name, tensor in inputs.items()}
        try:
            (values,) = self._session.run([self._output], arrays | self._constants)
        except Exception as exc:  # as above
            raise GraphError(str(exc)) from exc
        actual, expected = (values.dtype, values.shape), (np.dtype(self._kind), shape)
        if actual != expected:
            raise GraphError(f"The output has type and shape {actual}, expected {expected}. Build it again.")
        answer: bytes = values.tobytes()
        return answer


def _array_of(tensor: Tensor) -> "NDArray[np.generic]":
    values: NDArray[np.generic] = np.frombuffer(tensor.content, dtype=tensor.kind)
    return values.reshape(tensor.shape)
