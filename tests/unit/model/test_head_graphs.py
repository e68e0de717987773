"""The graphs that are served are what `layers/model/coldframe_training/head_graphs.py` says, to the byte."""

import subprocess
from pathlib import Path

import pytest

from coldframe.model.files import HEAD_NAMES
from coldframe.model.heads import GRAPHS
from coldframe_local.paths import BUILD_PYTHON, ROOT, build_environ

pytestmark = pytest.mark.skipif(
    not BUILD_PYTHON.exists(), reason=f"no {BUILD_PYTHON}: no graph was written. `make build` sets it up."
)

WRITE = """
import sys
from pathlib import Path
from coldframe_training.head_graphs import write_head_graphs
write_head_graphs(Path(sys.argv[1]))
"""
INPUTS = """
import sys
import onnx
for path in sys.argv[1:]:
    graph = onnx.load(path).graph
    print(graph.name, len(graph.initializer), *(each.name for each in graph.input))
"""


def in_build_environment(code: str, *arguments: Path) -> str:
    """What Python prints where onnx is installed."""
    done = subprocess.run(
        [BUILD_PYTHON, "-c", code, *arguments],
        cwd=ROOT,
        env=build_environ(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def graphs_in(folder: Path) -> dict[str, bytes]:
    """Content of each graph's file, by its name."""
    return {path.name: path.read_bytes() for path in folder.glob("*.onnx")}


def test_served_graphs_are_those_of_their_source(tmp_path: Path) -> None:
    """Whoever changes a graph's text without writing its file, or the file by hand, is told."""
    in_build_environment(WRITE, tmp_path)
    assert graphs_in(GRAPHS) == graphs_in(tmp_path)
    assert {*graphs_in(tmp_path)} == {f"{name}.onnx" for name in (*HEAD_NAMES, "centroids", "estimator")}


def test_graphs_hold_no_weights() -> None:
    """Weights are inputs: one file serves every model."""
    lines = in_build_environment(INPUTS, *sorted(GRAPHS.glob("*.onnx"))).splitlines()
    found = {name: (int(weights), inputs) for name, weights, *inputs in map(str.split, lines)}
    assert found["logreg"] == (0, ["embeddings", "weight", "bias"])
    assert found["estimator"] == (0, ["weights", "tokens", "factors"])
    assert {weights for weights, _ in found.values()} == {0}
