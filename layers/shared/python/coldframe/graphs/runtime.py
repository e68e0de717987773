"""Opens graphs with the part of onnxruntime that this machine has."""

from coldframe.graphs.c_api import library_path, load_library
from coldframe.graphs.early import take_opening
from coldframe.graphs.graph import Graph, GraphFile


def open_graph(file: GraphFile) -> Graph:
    """A graph, ready to run. Raises GraphError when onnxruntime cannot load it."""
    opening = take_opening(str(file.path))
    return (opening and opening.graph_of(file)) or open_now(file)


def open_now(file: GraphFile) -> Graph:
    """A graph that no thread has begun to open. Raises GraphError."""
    path = library_path()
    if path is None:
        from coldframe.graphs.python_binding import BoundGraph

        return BoundGraph(file)
    from coldframe.graphs.c_library import LibraryGraph

    return LibraryGraph(load_library(path), file)
