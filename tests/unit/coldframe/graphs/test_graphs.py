"""The C library and the Python binding run a graph to the same bits, say what is wrong, and keep nothing."""

import gc
import mmap
import os
import random
import struct
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coldframe.graphs import c_api, early, runtime
from coldframe.graphs.c_api import Library, library_path, load_library
from coldframe.graphs.c_library import LibraryGraph
from coldframe.graphs.early import open_early
from coldframe.graphs.graph import Graph, GraphError, GraphFile, Kind, Tensor
from coldframe.graphs.python_binding import BoundGraph
from coldframe.graphs.runtime import open_graph, open_now
from coldframe.model.bundle import load_manifest
from coldframe.model.files import (
    CENTROIDS,
    ENCODER,
    ESTIMATOR,
    HEAD_NAMES,
    encoder_graph,
    head_file,
    map_file,
    model_folder,
)
from coldframe.model.heads import GRAPHS
from coldframe.model.weights import read_weights
from coldframe.vectors import to_vector
from tests.conftest import EXAMPLE, ROOT

DIMENSION = 384
LABELS = 20
THREADS = 8
MOST_GROWTH = 1 << 20  # bytes; whatever is not given back takes more, measured for each kind of object

needs_library = pytest.mark.skipif(
    library_path() is None,
    reason="onnxruntime's wheel has no C library here: only the Python binding was run",
)

SMALL = GraphFile(
    GRAPHS / "logreg.onnx",
    "probabilities",
    "f",
    {
        "weight": Tensor("f", (3, 4), to_vector(random.Random(1).random() for _ in range(12))),
        "bias": Tensor("f", (3,), to_vector([0.5, -0.5, 0.0])),
    },
)
"""A head of three labels over four dimensions."""
ASKED = {"embeddings": Tensor("f", (2, 4), to_vector([0.5, 0.25, -1.0, 2.0, 0.0, 1.0, 3.0, -0.5]))}
SHAPE = (2, 3)
"""Of the answer to these rows."""


def in_library(file: GraphFile) -> LibraryGraph:
    """The graph by way of the C library."""
    path = library_path()
    assert path is not None
    return LibraryGraph(load_library(path), file)


both_roads = pytest.mark.parametrize(
    "opened",
    [pytest.param(in_library, marks=needs_library, id="library"), pytest.param(BoundGraph, id="binding")],
)


def rows_of_ids(tokens: int, rows: int, seed: int = 0) -> dict[str, Tensor]:
    """Rows of token ids, as the encoder takes them."""
    source = random.Random(seed)
    ids = array("q", (source.randint(1000, 29_000) for _ in range(rows * tokens)))
    return {"input_ids": Tensor("q", (rows, tokens), ids)}


def embeddings(rows: int, seed: int = 0) -> dict[str, Tensor]:
    """Random embeddings, as heads and centroids take them."""
    source = random.Random(seed)
    values = to_vector(source.gauss(0, DIMENSION**-0.5) for _ in range(rows * DIMENSION))
    return {"embeddings": Tensor("f", (rows, DIMENSION), values)}


def text_of(tokens: int, seed: int = 0) -> dict[str, Tensor]:
    """Tokens of a text, as the estimator's sum takes them."""
    source = random.Random(seed)
    ids = array("q", (source.randrange(30_000) for _ in range(tokens)))
    factors = array("d", (source.uniform(1, 20) for _ in range(tokens)))
    return {"tokens": Tensor("q", (tokens,), ids), "factors": Tensor("d", (tokens,), factors)}


def served_graphs(bundle: Path, encoder_dir: Path) -> dict[str, GraphFile]:
    """Every graph of the served model, with its weights, by name."""
    folder, manifest = model_folder(bundle, EXAMPLE), load_manifest(bundle, EXAMPLE)
    tokens, labels = manifest.estimator.vocabulary, len(manifest.labels)
    directions = read_weights(folder, CENTROIDS)["directions"]
    weights = Tensor("h", (tokens, labels), memoryview(map_file(folder, ESTIMATOR))[4 * tokens :])

    def small(name: str, output: str, kind: Kind, constants: Mapping[str, Tensor]) -> GraphFile:
        return GraphFile(GRAPHS / f"{name}.onnx", output, kind, constants)

    return {
        "encoder": encoder_graph(encoder_dir / ENCODER, threads=1),
        "centroids": small("centroids", "strangeness", "f", {"directions": directions}),
        "estimator": small("estimator", "sums", "d", {"weights": weights}),
        **{
            name: small(name, "probabilities", "f", read_weights(folder, head_file(name)))
            for name in HEAD_NAMES
        },
    }


def shape_of(name: str, rows: int) -> tuple[int, ...]:
    """The shape of the answer of one of `served_graphs` to so many rows."""
    shapes = {"encoder": (rows, DIMENSION), "centroids": (rows,), "estimator": (LABELS,)}
    return shapes.get(name, (rows, LABELS))


@pytest.fixture(scope="module")
def files(bundle: Path, encoder_dir: Path) -> dict[str, GraphFile]:
    """Every graph of the served model."""
    return served_graphs(bundle, encoder_dir)


def in_new_process(code: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Runs Python with these arguments."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


# Equal bits


@needs_library
@pytest.mark.parametrize(("tokens", "rows"), [(1, 1), (256, 1), (17, 9)])
def test_embeddings_have_equal_bits(files: dict[str, GraphFile], tokens: int, rows: int) -> None:
    """Of one token, of a whole window and of a batch, by either road."""
    asked = rows_of_ids(tokens, rows)
    found = in_library(files["encoder"]).run(asked, (rows, DIMENSION))
    assert BoundGraph(files["encoder"]).run(asked, (rows, DIMENSION)) == found


@needs_library
@pytest.mark.parametrize("rows", [1, 2, 64])
@pytest.mark.parametrize("name", [*HEAD_NAMES, "centroids"])
def test_answers_have_equal_bits(files: dict[str, GraphFile], name: str, rows: int) -> None:
    """Of each head and of the centroids, for one text and for several, by either road."""
    asked = embeddings(rows)
    found = in_library(files[name]).run(asked, shape_of(name, rows))
    assert len(set(struct.unpack(f"{len(found) // 4}f", found))) > 1 or rows == 1
    assert BoundGraph(files[name]).run(asked, shape_of(name, rows)) == found


@needs_library
@pytest.mark.parametrize("tokens", [1, 2, 300])
def test_sums_have_equal_bits(files: dict[str, GraphFile], tokens: int) -> None:
    """Of the estimator's tokens, by either road."""
    asked, shape = text_of(tokens), (LABELS,)
    assert in_library(files["estimator"]).run(asked, shape) == BoundGraph(files["estimator"]).run(
        asked, shape
    )


@both_roads
def test_bytes_lie_anywhere(opened: Callable[[GraphFile], Graph], tmp_path: Path) -> None:
    """Bytes, an array, a view into the midst of either and a mapped file are the same to a graph."""
    values = array("f", ASKED["embeddings"].content)
    (tmp_path / "values").write_bytes(bytes(64) + values.tobytes())
    with (tmp_path / "values").open("rb") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    graph = opened(SMALL)
    expected = graph.run(ASKED, SHAPE)
    midst = memoryview(bytearray(bytes(8) + values.tobytes() + bytes(8)))[8:-8]
    for content in (values, memoryview(values), midst, mapped[64:]):
        assert graph.run({"embeddings": Tensor("f", (2, 4), content)}, SHAPE) == expected


@both_roads
def test_weights_stay_as_long_as_their_graph(opened: Callable[[GraphFile], Graph]) -> None:
    """Nobody but the graph holds its weights, and other objects come and go."""

    def copied() -> dict[str, Tensor]:
        return {
            name: tensor._replace(content=bytes(bytearray(tensor.content)))
            for name, tensor in SMALL.constants.items()
        }

    expected = opened(SMALL).run(ASKED, SHAPE)
    graph = opened(SMALL._replace(constants=copied()))
    gc.collect()
    others = [bytes([255]) * len(tensor.content) for tensor in SMALL.constants.values() for _ in range(1000)]
    assert graph.run(ASKED, SHAPE) == expected
    assert others


# Threads


@needs_library
def test_threads_that_open_at_once_get_one_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """However many threads are the first, one of them loads the library, and all get that."""
    path = tmp_path / "libonnxruntime.so"  # a name that no other test loads
    path.symlink_to(library_path() or "")
    made: list[str] = []
    at_once = threading.Barrier(THREADS, timeout=60)

    class Counted(Library):
        def __init__(self, path: str) -> None:
            made.append(path)
            super().__init__(path)

    def load(_: int) -> Library:
        at_once.wait()
        return load_library(str(path))

    monkeypatch.setattr(c_api, "Library", Counted)
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(load, range(THREADS)))
    assert made == [str(path)]
    assert all(library is found[0] for library in found)


@both_roads
def test_threads_run_one_graph(opened: Callable[[GraphFile], Graph], files: dict[str, GraphFile]) -> None:
    """Each of many threads gets the bits that its texts have alone."""
    asked: list[tuple[str, int, dict[str, Tensor]]] = [
        *(("encoder", 2, rows_of_ids(16, 2, seed)) for seed in range(THREADS)),
        *((name, seed + 1, embeddings(seed + 1, seed)) for name in HEAD_NAMES for seed in range(THREADS)),
        *(("estimator", 1, text_of(50, seed)) for seed in range(THREADS)),
    ]
    graphs = {name: opened(file) for name, file in files.items()}

    def answer(name: str, rows: int, inputs: dict[str, Tensor]) -> bytes:
        return graphs[name].run(inputs, shape_of(name, rows))

    alone = [answer(*each) for each in asked]
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(5):
            assert list(pool.map(lambda each: answer(*each), asked)) == alone


# What is wrong is said


@both_roads
@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({**ASKED, "vectors": ASKED["embeddings"]}, "vectors"),
        ({}, "embeddings"),
        ({"embeddings": Tensor("f", (4,), to_vector([1.0] * 4))}, "rank.*embeddings Got: 1 Expected: 2"),
        ({"embeddings": Tensor("f", (1, 3), to_vector([1.0] * 3))}, "dimension mismatch"),
        ({"embeddings": Tensor("d", (1, 4), array("d", [1.0] * 4))}, "double.*float"),
    ],
    ids=["unknown name", "missing", "rank", "dimension", "kind"],
)
def test_wrong_inputs(opened: Callable[[GraphFile], Graph], inputs: dict[str, Tensor], said: str) -> None:
    """An input that the graph cannot take ends in an error that names the reason; the next run answers."""
    graph = opened(SMALL)
    expected = graph.run(ASKED, SHAPE)
    with pytest.raises(GraphError, match=said):
        graph.run(inputs, SHAPE)
    assert graph.run(ASKED, SHAPE) == expected


@both_roads
def test_wrong_outputs(opened: Callable[[GraphFile], Graph]) -> None:
    """An output of another kind, shape or name is no answer."""
    with pytest.raises(GraphError, match=r"Unexpected output data type|has type and shape"):
        opened(SMALL._replace(kind="d")).run(ASKED, SHAPE)
    for shape in ((2, 4), (2, 2), (1, 3), (6,)):
        with pytest.raises(GraphError, match=r"shape|Invalid rank|invalid dimensions"):
            opened(SMALL).run(ASKED, shape)
    with pytest.raises(GraphError, match=r"output name: ?logarithms"):
        opened(SMALL._replace(output="logarithms")).run(ASKED, SHAPE)


@both_roads
@pytest.mark.parametrize("shape", [(1, 4), (4, 4), (2, 3), (2, 5), (8, 2)])
def test_content_of_another_size(opened: Callable[[GraphFile], Graph], shape: tuple[int, ...]) -> None:
    """Content that is more or less than its shape is refused before the library sees it."""
    tensor = ASKED["embeddings"]._replace(shape=shape)
    with pytest.raises(ValueError, match=r"Give the tensor its true shape|cannot reshape"):
        opened(SMALL).run({"embeddings": tensor}, SHAPE)
    weight = SMALL.constants["weight"]._replace(shape=shape)
    with pytest.raises(ValueError, match=r"Give the tensor its true shape|cannot reshape"):
        opened(SMALL._replace(constants={**SMALL.constants, "weight": weight}))


@both_roads
@pytest.mark.parametrize("share", [0, 0.001, 0.5, 0.999])
def test_encoder_that_was_cut_off(
    opened: Callable[[GraphFile], Graph], encoder_dir: Path, tmp_path: Path, share: float
) -> None:
    """Not even its last bytes may be missing."""
    content = (encoder_dir / ENCODER).read_bytes()
    (tmp_path / ENCODER).write_bytes(content[: int(share * len(content))])
    with pytest.raises(GraphError, match=r"ORT model verification failed|empty file"):
        opened(encoder_graph(tmp_path / ENCODER, threads=1))


@both_roads
@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.99])
def test_head_that_was_cut_off(opened: Callable[[GraphFile], Graph], tmp_path: Path, share: float) -> None:
    """A part of a head's graph is none."""
    content, path = SMALL.path.read_bytes(), tmp_path / "logreg.onnx"
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(GraphError, match=r"Protobuf parsing failed|No graph was found"):
        opened(SMALL._replace(path=path))


@both_roads
@pytest.mark.parametrize("name", ["graph.ort", "graph.onnx"])
def test_no_graph(opened: Callable[[GraphFile], Graph], tmp_path: Path, name: str) -> None:
    """A file of another kind is refused, and so is none."""
    path = tmp_path / name
    with pytest.raises(GraphError):
        opened(SMALL._replace(path=path))
    for content in (b"The shuttle reached orbit. " * 100, bytes(1000), b"PK\x03\x04" * 100):
        path.write_bytes(content)
        with pytest.raises(GraphError, match=r"verification failed|Protobuf|No graph"):
            opened(SMALL._replace(path=path))


@needs_library
def test_no_library(tmp_path: Path) -> None:
    """A file that is no library, one that is another library, and none are named, with what to do."""
    (tmp_path / "libonnxruntime.so").write_text("The shuttle reached orbit.")
    for path in (tmp_path / "libonnxruntime.so", tmp_path / "libnothing.so", Path(mmap.__file__)):
        with pytest.raises(GraphError, match=rf"^{path} cannot be used: .*Install onnxruntime again\.$"):
            load_library(str(path))


@needs_library
def test_library_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library without this version of the API is refused, with both versions."""
    monkeypatch.setattr(c_api, "_API_VERSION", 9999)
    with pytest.raises(
        GraphError, match=r"^onnxruntime 1\.\d+\.\d+ has no C API of version 9999\. Install 1\.16 or newer\.$"
    ):
        Library(library_path() or "")


# Which road is taken


@needs_library
def test_the_library_is_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is a C library it runs the graph, else the binding does."""
    graph = open_graph(SMALL)
    assert isinstance(graph, LibraryGraph)
    monkeypatch.setattr(runtime, "library_path", lambda: None)
    bound = open_graph(SMALL)
    assert isinstance(bound, BoundGraph)
    assert bound.run(ASKED, SHAPE) == graph.run(ASKED, SHAPE)


def test_where_the_library_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is found in the first folder of the path that has it, without an import; else there is none."""
    for place in ("empty", "first", "second"):
        (tmp_path / place / "onnxruntime" / "capi").mkdir(parents=True)
    for place in ("first", "second"):
        (tmp_path / place / "onnxruntime" / "capi" / "libonnxruntime.so.1.31.1").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / place) for place in ("missing", "empty")])
    assert library_path() is None
    sys.path += [str(tmp_path / place) for place in ("first", "second")]
    assert library_path() == str(tmp_path / "first" / "onnxruntime" / "capi" / "libonnxruntime.so.1.31.1")


def test_a_graph_that_was_opened_early_is_used_once() -> None:
    """Who asks for it gets that very graph; the next one, and who wants another, get their own."""
    open_early(str(SMALL.path), lambda: (SMALL, open_now(SMALL)))
    opening = early._openings[str(SMALL.path)]
    first, second = open_graph(SMALL), open_graph(SMALL)
    assert first is opening._graph
    assert second is not first
    open_early(str(SMALL.path), lambda: (SMALL, open_now(SMALL)))
    opening = early._openings[str(SMALL.path)]
    other = open_graph(SMALL._replace(threads=2))
    assert other is not opening._graph
    assert other.run(ASKED, SHAPE) == first.run(ASKED, SHAPE)


def test_an_early_opening_that_fails_is_told_to_who_asks(tmp_path: Path) -> None:
    """Its thread says nothing; `open_graph` meets the error again."""
    file = SMALL._replace(path=tmp_path / "graph.onnx")
    file.path.write_bytes(b"broken")
    open_early(str(file.path), lambda: (file, open_now(file)))
    with pytest.raises(GraphError, match="Protobuf parsing failed"):
        open_graph(file)


# Processes

RUNNING = f"""
import os, sys, threading
from pathlib import Path
from array import array
from coldframe.graphs.graph import GraphError, GraphFile, Tensor
from coldframe.graphs.runtime import open_graph
from coldframe.model.files import encoder_graph
logreg = GraphFile(
    Path({str(SMALL.path)!r}),
    "probabilities",
    "f",
    {{
        "weight": Tensor("f", (20, 384), array("f", range(20 * 384))),
        "bias": Tensor("f", (20,), array("f", range(20))),
    }},
)
asked = {{"embeddings": Tensor("f", (8, 384), array("f", range(8 * 384)))}}
"""

MEMORY = """
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def run(graph):
    graph.run(asked, (8, 20))

def fail(graph):
    for wrong in ({**asked, "other": asked["embeddings"]}, {"embeddings": Tensor("f", (1, 3), bytes(12))}):
        try:
            graph.run(wrong, (8, 20))
        except GraphError:
            continue
        raise AssertionError

def reopen(graph):
    open_graph(logreg).run(asked, (8, 20))

graph = open_graph(logreg)
step, few, many = globals()[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
for _ in range(few):
    step(graph)
before = resident()
for _ in range(many - few):
    step(graph)
print(resident() - before)
"""

FORKING = """
encoder = open_graph(encoder_graph(Path(sys.argv[1]), threads=1))
head = open_graph(logreg)
ids = {"input_ids": Tensor("q", (2, 16), array("q", range(1000, 1032)))}
def answer():
    return encoder.run(ids, (2, 384)) + head.run(asked, (8, 20))
before = answer()
reading, writing = os.pipe()
child = os.fork()
if not child:
    os.write(writing, answer())
    sys.exit(3)
os.close(writing)
found = b"".join(iter(lambda: os.read(reading, 1 << 16), b""))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
assert found == before == answer()
"""

ENDING = """
graph = open_graph(encoder_graph(Path(sys.argv[1]), threads=1))
ids = {"input_ids": Tensor("q", (8, 256), array("q", [1000] * 2048))}
begun = threading.Event()
def passes():
    while True:
        begun.set()
        graph.run(ids, (8, 384))
for _ in range(2):
    threading.Thread(target=passes, daemon=True).start()
begun.wait()
"""

IMPORTS = """
open_graph(logreg).run(asked, (8, 20))
print([name for name in ("numpy", "onnxruntime") if name in sys.modules])
"""


@needs_library
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc: no process's memory was counted")
@pytest.mark.parametrize(
    ("step", "few", "many"), [("run", 1000, 20_000), ("fail", 1000, 20_000), ("reopen", 100, 1000)]
)
def test_memory_stays(step: str, few: int, many: int) -> None:
    """Neither a run, nor one that fails, nor a graph that nobody needs any more keeps memory."""
    done = in_new_process(RUNNING + MEMORY, step, few, many)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < MOST_GROWTH


@needs_library
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_answers_as_its_parent(encoder_dir: Path) -> None:
    """A child that was forked after loading gives the same bits, and both end."""
    done = in_new_process(RUNNING + FORKING, encoder_dir / ENCODER)
    assert done.returncode == 0, done.stderr


@needs_library
def test_an_end_amid_a_pass(encoder_dir: Path) -> None:
    """An interpreter that ends while threads are in a pass ends well, every time."""
    for _ in range(3):
        done = in_new_process(RUNNING + ENDING, encoder_dir / ENCODER)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_library
def test_nothing_heavy_is_imported() -> None:
    """A graph runs without numpy and without the Python binding."""
    done = in_new_process(RUNNING + IMPORTS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
