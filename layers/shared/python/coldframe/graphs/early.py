"""A graph that a thread opens before anything else is imported.

onnxruntime works without the interpreter's lock: on two processors, its start costs a cold start little time.
"""

from __future__ import annotations

import _thread

from coldframe.graphs.c_api import library_path, load_library

TYPE_CHECKING = False  # `typing` is imported later
if TYPE_CHECKING:
    from collections.abc import Callable

    from coldframe.graphs.graph import Graph, GraphFile


class Opening:
    """One graph, which a thread opens."""

    def __init__(self, open_file: Callable[[], tuple[GraphFile, Graph]]) -> None:
        """open_file: returns the file and its graph; called after the library is loaded."""
        self._open_file = open_file
        self._file: GraphFile | None = None
        self._graph: Graph | None = None
        self._running = _thread.allocate_lock()
        self._running.acquire()
        _thread.start_new_thread(self._open, ())

    def graph_of(self, file: GraphFile) -> Graph | None:
        """The graph of exactly this file, after the thread has ended; None when it could not be opened."""
        with self._running:
            return self._graph if self._file == file else None

    def _open(self) -> None:
        try:
            path = library_path()
            if path is not None:
                load_library(path)
            self._file, self._graph = self._open_file()
        except Exception:  # noqa: S110  # the caller of `open_graph` opens the graph again, and gets the error
            pass
        finally:
            self._running.release()


_openings: dict[str, Opening] = {}


def open_early(path: str, open_file: Callable[[], tuple[GraphFile, Graph]]) -> None:
    """Begin to open the graph at `path`, for the first `open_graph` of this path."""
    _openings[path] = Opening(open_file)


def take_opening(path: str) -> Opening | None:
    """The opening of a graph, once."""
    return _openings.pop(path, None)
