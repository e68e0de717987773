"""Opens graphs with the onnxruntime of this machine."""

import contextlib
import functools
import os
import sys
import threading
from pathlib import Path

from coldframe.graphs.graph import Graph, GraphFile

_PACKAGE = ("onnxruntime", "capi")
_LIBRARY = "libonnxruntime.so."


class _Opening(threading.Thread):
    """A thread that opens one graph."""

    def __init__(self, file: GraphFile) -> None:
        super().__init__(name="open-graph", daemon=True)
        self.file = file
        self.graph: Graph | None = None

    def run(self) -> None:
        # The model opens the graph again, and meets the error.
        with contextlib.suppress(Exception):
            self.graph = _open(self.file)


_openings: dict[Path, _Opening] = {}


def open_early(file: GraphFile) -> None:
    """Starts to open a graph for a later call of `open_graph`."""
    _openings[file.path] = opening = _Opening(file)
    opening.start()


def open_graph(file: GraphFile) -> Graph:
    """A graph, ready to run. Raises GraphError when onnxruntime cannot load it."""
    opening = _openings.pop(file.path, None)
    if opening is not None:
        opening.join()
        if opening.graph is not None and opening.file == file:
            return opening.graph
    return _open(file)


def _open(file: GraphFile) -> Graph:
    path = library_path()
    if path is None:
        from coldframe.graphs.python_binding import BoundGraph

        return BoundGraph(file)
    from coldframe.graphs.c_library import LibraryGraph, load_library

    return LibraryGraph(load_library(path), file)


@functools.cache
def library_path() -> str | None:
    """The installed onnxruntime's C library, without importing onnxruntime; None if its wheel has none."""
    for place in sys.path:
        folder = os.path.join(place, *_PACKAGE)  # noqa: PTH118  # pathlib's import is ahead of what is needed here
        try:
            names = sorted(name for name in os.listdir(folder) if name.startswith(_LIBRARY))  # noqa: PTH208
        except OSError:
            continue
        if names:
            return os.path.join(folder, names[-1])  # noqa: PTH118
    return None
