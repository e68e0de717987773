"""Files of weights: what was written is read, and a damaged one is refused or ends in an answer."""

import random
from array import array
from math import prod
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.errors import BundleCorrupt, BundleError, BundleMissing
from coldframe.graphs.graph import KIND_BYTES, GraphError, Tensor
from coldframe.model.files import head_file, model_folder
from coldframe.model.heads import load_head
from coldframe.model.weights import read_weights, write_weights
from coldframe.vectors import to_floats, to_vector
from tests.conftest import EXAMPLE

NAME = "weights.bin"
SMALL = {
    "weight": Tensor("f", (2, 3), to_vector([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
    "feature": Tensor("h", (4,), array("h", [1, -1, 0, 32767])),
}


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    """Any values of any kind and shape."""
    kind = draw(st.sampled_from(sorted(KIND_BYTES)))
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    size = KIND_BYTES[kind] * prod(shape)
    return Tensor(kind, shape, draw(st.binary(min_size=size, max_size=size)))


def plain(arrays: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same with their content as bytes."""
    return {name: tensor._replace(content=bytes(tensor.content)) for name, tensor in arrays.items()}


def spoiled(folder: Path, **changes: object) -> None:
    """Writes SMALL with a first line that says something else of `weight`: kind, shape or start."""
    write_weights(folder / NAME, SMALL)
    line, content = (folder / NAME).read_bytes().split(b"\n", 1)
    places = msgspec.json.decode(line)
    kind, shape, start = places["weight"]
    said = {"kind": kind, "shape": shape, "start": start} | changes
    places["weight"] = list(said.values())
    (folder / NAME).write_bytes(msgspec.json.encode(places) + b"\n" + content)


@given(st.dictionaries(st.text(max_size=9), tensors(), max_size=4))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, Tensor]) -> None:
    """Arrays of every kind, shape and name come back to the bit, in their order."""
    folder = tmp_path_factory.mktemp("weights")
    write_weights(folder / NAME, arrays)
    found = read_weights(folder, NAME)
    assert list(plain(found).items()) == list(arrays.items())


@given(st.dictionaries(st.text(max_size=9), tensors(), max_size=4))
def test_arrays_lie_at_multiples_of_64_bytes(
    tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, Tensor]
) -> None:
    """Each array begins there in the file, and so does the one after the last."""
    path = tmp_path_factory.mktemp("weights") / NAME
    write_weights(path, arrays)
    content = path.read_bytes()
    begins = content.index(b"\n") + 1
    starts = [start for _, _, start in msgspec.json.decode(content[:begins]).values()]
    assert all(place % 64 == 0 for place in (begins, len(content), *starts))


def test_an_array_is_written_as_its_bytes(tmp_path: Path) -> None:
    """Content may be an array, too."""
    write_weights(tmp_path / NAME, SMALL)
    assert plain(read_weights(tmp_path, NAME)) == plain(SMALL)


def test_what_is_written_into_an_array_stays_in_here(tmp_path: Path) -> None:
    """The file keeps its bytes: graphs get memory that may be written to, and nobody else does."""
    write_weights(tmp_path / NAME, SMALL)
    before, arrays = (tmp_path / NAME).read_bytes(), read_weights(tmp_path, NAME)
    view = memoryview(arrays["weight"].content)
    view[0] = view[0] ^ 1
    assert (tmp_path / NAME).read_bytes() == before
    assert plain(read_weights(tmp_path, NAME)) == plain(SMALL)


@pytest.mark.parametrize("content", [None, b""])
def test_no_file(tmp_path: Path, content: bytes | None) -> None:
    """A file that is not there and an empty one are named, with what to do."""
    if content is not None:
        (tmp_path / NAME).write_bytes(content)
    with pytest.raises(BundleMissing, match=r"no readable weights\.bin\. Run `coldframe build`"):
        read_weights(tmp_path, NAME)


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"[]\n",
        b"{\n",
        b"null\n",
        b"\x93NUMPY\x01\x00v\x00{'descr': '<f4'}\n",
        b"\x80\x04N.",
        b'{"weight": ["f", [2, 3]]}\n',
        b'{"weight": ["f", [2.5], 0]}\n',
        b'{"weight": ["f", 6, 0]}\n',
        b'{"weight": [1, [6], 0]}\n',
        b'{"\xff": ["f", [6], 0]}\n',
    ],
)
def test_damaged_line(tmp_path: Path, line: bytes) -> None:
    """A first line that does not say where arrays are is refused, with what to do."""
    (tmp_path / NAME).write_bytes(line + bytes(256))
    with pytest.raises(
        BundleCorrupt, match=rf"^{tmp_path / NAME} cannot be read: .*Run `coldframe build` again"
    ):
        read_weights(tmp_path, NAME)


@pytest.mark.parametrize("kind", ["e", "O", "float32", "", "B"])
def test_unknown_kind(tmp_path: Path, kind: str) -> None:
    """A kind of values that no graph takes is named."""
    spoiled(tmp_path, kind=kind)
    with pytest.raises(BundleCorrupt, match=rf"kind '{kind}' and the shape \(2, 3\).*coldframe build"):
        read_weights(tmp_path, NAME)


@pytest.mark.parametrize("shape", [[], [0], [2, 0], [-1], [-2, -3], [2, -3]])
def test_shape_of_nothing(tmp_path: Path, shape: list[int]) -> None:
    """An array without values, or with fewer than none, is refused; graphs take at least one."""
    spoiled(tmp_path, shape=shape)
    with pytest.raises(BundleCorrupt, match=r"the shape \(.*\)\. Run `coldframe build`"):
        read_weights(tmp_path, NAME)


@pytest.mark.parametrize(
    "changes",
    [
        {"start": -24},
        {"start": -1},
        {"start": 10**6},
        {"start": 120},
        {"shape": [1000]},
        {"shape": [2**62, 3]},
    ],
)
def test_array_beyond_its_file(tmp_path: Path, changes: dict[str, object]) -> None:
    """An array that begins before the first or ends after the last byte is refused."""
    spoiled(tmp_path, **changes)
    with pytest.raises(BundleCorrupt, match=r"an array is not whole\. Run `coldframe build`"):
        read_weights(tmp_path, NAME)


def test_file_that_was_cut_off(tmp_path: Path) -> None:
    """Wherever a file ends too early, within an array or the first line, it is refused."""
    write_weights(tmp_path / NAME, SMALL)
    content = (tmp_path / NAME).read_bytes()
    padding = 64 - 4 * 2  # after the last array
    for size in range(1, len(content) - padding):
        (tmp_path / NAME).write_bytes(content[:size])
        with pytest.raises(BundleCorrupt):
            read_weights(tmp_path, NAME)


@given(st.data())
def test_any_damage_is_refused_or_whole(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever bytes are changed, there is a BundleError, or arrays as large as they say."""
    folder = tmp_path_factory.mktemp("weights")
    write_weights(folder / NAME, SMALL)
    content = bytearray((folder / NAME).read_bytes())
    places = st.integers(0, content.index(b"\n"))
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=4)):
        content[place] = value
    (folder / NAME).write_bytes(content)
    try:
        found = read_weights(folder, NAME)
    except BundleError:
        return
    for kind, shape, values in found.values():
        assert memoryview(values).nbytes == KIND_BYTES[kind] * prod(shape)


@pytest.mark.parametrize("name", ["rf", "hgb"])
@pytest.mark.parametrize("damage", ["to itself", "to the root", "before all", "after all", "at random"])
def test_damaged_trees_end(bundle: Path, tmp_path: Path, name: str, damage: str) -> None:
    """Trees whose right children lie anywhere, even behind, end: in an answer, or in an error."""
    arrays = read_weights(model_folder(bundle, EXAMPLE), head_file(name))
    right = array("i", bytes(arrays["right"].content))
    features = array("h", bytes(arrays["feature"].content))
    dice = random.Random(3)
    for node, feature in enumerate(features):
        if feature >= 0:  # a leaf's `right` is its row
            right[node] = {
                "to itself": node,
                "to the root": 0,
                "before all": -len(right) - 1,
                "after all": len(right),
                "at random": dice.randrange(len(right)),
            }[damage]
    (tmp_path / head_file(name)).parent.mkdir()
    write_weights(tmp_path / head_file(name), {**arrays, "right": arrays["right"]._replace(content=right)})
    head = load_head(tmp_path, name)
    embeddings = [to_vector([0.05] * 384), to_vector([-0.05] * 384)]
    if damage in ("before all", "after all"):
        with pytest.raises(GraphError, match="out of data bounds"):
            head.predict(embeddings)
        return
    try:
        answers = head.predict(embeddings)
    except GraphError as exc:
        assert "out of data bounds" in str(exc)
    else:
        assert {len(to_floats(answer)) for answer in answers} == {20}
