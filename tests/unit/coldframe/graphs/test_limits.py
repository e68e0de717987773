"""Limits of a graph: refused memory, a library without its end, the longest batch, a killed start."""

import os
import random
import signal
import subprocess
import sys
from array import array
from pathlib import Path

import pytest

from coldframe.graphs.c_api import library_path
from coldframe.graphs.graph import Tensor
from coldframe.graphs.runtime import open_graph
from coldframe.model.files import ENCODER, encoder_graph
from tests.conftest import ROOT

ROWS, TOKENS = 1024, 16

pytestmark = pytest.mark.skipif(
    library_path() is None or not Path("/proc/self/statm").exists(),
    reason="no C library, or no /proc: no process was limited",
)

SCARCE = """
import os, resource, sys
from array import array
from pathlib import Path
from coldframe.graphs.c_api import library_path, load_library
from coldframe.graphs.graph import GraphError, Tensor
from coldframe.graphs.runtime import open_graph
from coldframe.model.files import encoder_graph

file, spare = encoder_graph(Path(sys.argv[2]), threads=1), int(sys.argv[3])
few = {"input_ids": Tensor("q", (1, 4), array("q", [1000] * 4))}
many = {"input_ids": Tensor("q", (64, 256), array("q", [1000] * 64 * 256))}

def limited(step):
    # The end of a step while the process may only take `spare` bytes more.
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * os.sysconf("SC_PAGE_SIZE") + spare
    unlimited = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size, unlimited[1]))
    try:
        return step()
    except (GraphError, MemoryError) as exc:
        return exc
    finally:
        resource.setrlimit(resource.RLIMIT_AS, unlimited)

load_library(library_path())
if sys.argv[1] == "open":
    graph = limited(lambda: open_graph(file))
    end = graph if isinstance(graph, Exception) else "bits"
else:
    graph = open_graph(file)
    expected = graph.run(few, (1, 384))
    end = limited(lambda: graph.run(many, (64, 384)))
    assert graph.run(few, (1, 384)) == expected
    end = end if isinstance(end, Exception) else "bits" if end == graph.run(many, (64, 384)) else "other bits"
print(end if isinstance(end, str) else type(end).__name__)
"""


def in_new_process(code: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Runs Python with these arguments."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("spare_mb", [0, 1, 8, 32, 64, 256, 1024])
@pytest.mark.parametrize("step", ["open", "run"])
def test_memory_that_is_refused(encoder_dir: Path, step: str, spare_mb: int) -> None:
    """A step without memory ends in an error or in the right bits, and later steps have the right bits."""
    done = in_new_process(SCARCE, step, encoder_dir / ENCODER, spare_mb << 20)
    assert done.returncode == 0, done.stderr
    enough = spare_mb >= {"open": 256, "run": 1024}[step]
    assert done.stdout.strip() in (["bits"] if enough else ["bits", "GraphError", "MemoryError"])


@pytest.mark.parametrize("share", [0.0001, 0.1, 0.5, 0.9, 0.999, 0.99999])
def test_library_that_was_cut_off(tmp_path: Path, share: float) -> None:
    """A library whose end is missing is refused before it is mapped: the process would die on its pages."""
    whole = Path(library_path() or "")
    cut = tmp_path / "libonnxruntime.so"
    with whole.open("rb") as source:
        cut.write_bytes(source.read(int(whole.stat().st_size * share)))
    code = "import sys; from coldframe.graphs.c_api import load_library; load_library(sys.argv[1])"
    done = in_new_process(code, cut)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert f"GraphError: {cut} cannot be used: " in last
    assert last.endswith(" bytes are there. Install onnxruntime again.")


def test_the_longest_batch_has_the_bits_of_its_rows(encoder_dir: Path) -> None:
    """Each of 1,024 rows has the bits that it has alone."""
    graph = open_graph(encoder_graph(encoder_dir / ENCODER, threads=os.cpu_count() or 1))
    source = random.Random(0)
    ids = array("q", (source.randint(1000, 29_000) for _ in range(ROWS * TOKENS)))
    vectors = graph.run({"input_ids": Tensor("q", (ROWS, TOKENS), ids)}, (ROWS, 384))
    size = len(vectors) // ROWS
    for row in range(0, ROWS, 93):
        own = Tensor("q", (1, TOKENS), ids[row * TOKENS : (row + 1) * TOKENS])
        assert graph.run({"input_ids": own}, (1, 384)) == vectors[row * size : (row + 1) * size]


@pytest.mark.parametrize("mapped", ["libonnxruntime", "encoder.ort", "estimator.bin"])
def test_a_start_that_is_killed_leaves_nothing_behind(bundle: Path, mapped: str) -> None:
    """A process killed as soon as it has mapped a file changes none, and the next process answers."""
    before = modified(bundle)
    command = [sys.executable, "-c", "from coldframe_functions.predict.app import handler"]
    environ = os.environ | {"COLDFRAME_MODEL_DIR": str(bundle)}
    with subprocess.Popen(command, cwd=ROOT, env=environ) as process:
        maps = Path(f"/proc/{process.pid}/maps")
        while mapped not in maps.read_text():
            assert process.poll() is None
        process.kill()
    assert process.returncode == -signal.SIGKILL
    whole = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert whole.returncode == 0, whole.stderr
    assert modified(bundle) == before


def modified(folder: Path) -> dict[Path, int]:
    """When each file was written, in nanoseconds."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
