"""`coldframe verify` compares each part of a model with the labels, and names the one that does not fit."""

import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from coldframe.errors import BundleCorrupt
from coldframe.model.bundle import EstimatorFacts, Manifest, describe_file, load_manifest
from coldframe.model.files import (
    ANSWERS,
    CENTROIDS,
    ESTIMATOR,
    HEAD_NAMES,
    MANIFEST,
    head_file,
    model_folder,
)
from coldframe.model.verify import verify_bundle
from coldframe.model.weights import read_weights, write_weights
from coldframe_training.publishing.head_files import tensor_of
from tests.conftest import EXAMPLE

Change = Callable[[NDArray[Any]], NDArray[Any]]


def change_file(path: Path, changes: Mapping[str, Change]) -> None:
    """Changes arrays of a file of weights."""
    arrays = {}
    for name, tensor in read_weights(path.parent, path.name).items():
        array = np.frombuffer(tensor.content, dtype=tensor.kind).reshape(tensor.shape)
        arrays[name] = tensor_of(changes.get(name, np.array)(array))
    write_weights(path, arrays)


def without_last(array: NDArray[Any]) -> NDArray[Any]:
    return array[:-1]


def without_last_column(array: NDArray[Any]) -> NDArray[Any]:
    return array[:, :-1]


def without_last_label(array: NDArray[Any]) -> NDArray[Any]:
    fewer: NDArray[Any] = np.minimum(array, array.max() - 1)
    return fewer


FEWER: dict[str, dict[str, Change]] = {
    "logreg": {"weight": without_last, "bias": without_last},
    "mlp": {"weight_2": without_last, "bias_2": without_last},
    "rf": {"leaf": without_last_column},
    "hgb": {"baseline": without_last, "label": without_last_label},
}
"""By head: what makes it answer one class fewer."""


@pytest.fixture
def copy(bundle: Path, tmp_path: Path) -> Path:
    """A copy of the bundle that a test may damage."""
    return Path(shutil.copytree(bundle, tmp_path / "bundle"))


def reseal(model_dir: Path, change: Callable[[Manifest], Manifest] = lambda manifest: manifest) -> None:
    """Writes the manifest that fits the files as they are now, changed by `change`."""
    manifest, folder = change(load_manifest(model_dir, EXAMPLE)), model_folder(model_dir, EXAMPLE)
    files = {name: describe_file(folder, name) for name in manifest.files}
    manifest = msgspec.structs.replace(manifest, files=files)
    sealed = msgspec.structs.replace(manifest, version=manifest.digest())
    (folder / MANIFEST).write_bytes(sealed.encode())


def change_estimator(**fields: object) -> Callable[[Manifest], Manifest]:
    """A change of the estimator's facts."""

    def change(manifest: Manifest) -> Manifest:
        facts: EstimatorFacts = msgspec.structs.replace(manifest.estimator, **fields)
        return msgspec.structs.replace(manifest, estimator=facts)

    return change


@pytest.mark.parametrize("name", HEAD_NAMES)
def test_head_of_fewer_classes(copy: Path, name: str) -> None:
    """A head that answers one class fewer than the model has labels is named, with both numbers."""
    labels = len(load_manifest(copy, EXAMPLE).labels)
    change_file(model_folder(copy, EXAMPLE) / head_file(name), FEWER[name])
    reseal(copy)
    with pytest.raises(BundleCorrupt, match=rf"heads/{name}\.bin .*{labels - 1} classes.* {labels} labels"):
        verify_bundle(copy)


def test_head_of_another_encoder(copy: Path) -> None:
    """A head for embeddings of another dimension is named, and the processor is not blamed."""
    change_file(model_folder(copy, EXAMPLE) / head_file("logreg"), {"weight": without_last_column})
    reseal(copy)
    with pytest.raises(BundleCorrupt, match=r"heads/logreg\.bin .*384"):
        verify_bundle(copy)


def test_estimator_of_fewer_classes(copy: Path) -> None:
    """An estimator of one class fewer than the model has labels is named, with both numbers."""
    manifest = load_manifest(copy, EXAMPLE)
    facts, labels = manifest.estimator, len(manifest.labels)
    path = model_folder(copy, EXAMPLE) / ESTIMATOR
    content = path.read_bytes()
    path.write_bytes(content[: facts.vocabulary * (4 + 2 * (labels - 1))])
    reseal(copy, change_estimator(bias=facts.bias[:-1], scales=facts.scales[:-1]))
    with pytest.raises(BundleCorrupt, match=rf"estimator\.bin .*{labels - 1} classes.* {labels} labels"):
        verify_bundle(copy)


def test_estimator_with_too_few_scales(copy: Path) -> None:
    """An estimator whose scales and biases differ in number is named."""
    facts = load_manifest(copy, EXAMPLE).estimator
    reseal(copy, change_estimator(scales=facts.scales[:-1]))
    with pytest.raises(BundleCorrupt, match=rf"estimator\.bin .*{len(facts.scales) - 1} scales"):
        verify_bundle(copy)


def test_estimator_of_another_vocabulary(copy: Path) -> None:
    """An estimator over fewer tokens than the tokenizer has is named, with both numbers."""
    facts = load_manifest(copy, EXAMPLE).estimator
    path = model_folder(copy, EXAMPLE) / ESTIMATOR
    content = path.read_bytes()
    path.write_bytes(content[: 30_000 * (4 + 2 * len(facts.bias))])
    reseal(copy, change_estimator(vocabulary=30_000))
    assert facts.vocabulary == 30_522
    with pytest.raises(BundleCorrupt, match=r"estimator\.bin .*30000 tokens.* 30522"):
        verify_bundle(copy)


def test_partner_that_is_no_head(copy: Path) -> None:
    """A partner head that the model lacks is named, with those that it has."""
    reseal(copy, change_estimator(partner="no-such-head"))
    with pytest.raises(BundleCorrupt, match=r"'no-such-head'.*hgb, logreg, mlp, rf"):
        verify_bundle(copy)


@pytest.mark.parametrize("name", ["logreg", "mlp"])
def test_head_that_answers_otherwise(copy: Path, name: str) -> None:
    """A head of the right shape whose labels are in another order is found by its golden answers."""
    turned = dict.fromkeys(FEWER[name], partial(np.roll, shift=1, axis=0))
    change_file(model_folder(copy, EXAMPLE) / head_file(name), turned)
    reseal(copy)
    with pytest.raises(BundleCorrupt, match=rf"^{name} gives a golden text's label the probability 0\.\d+"):
        verify_bundle(copy)


def test_estimator_that_answers_otherwise(copy: Path) -> None:
    """An estimator of another temperature is found by its golden answers."""
    reseal(copy, change_estimator(temperature=3.0))
    with pytest.raises(BundleCorrupt, match=r"^estimator gives a golden text's label the probability"):
        verify_bundle(copy)


def test_golden_answers_of_other_texts(copy: Path) -> None:
    """Fewer answers than golden texts are refused, with both numbers."""
    path = model_folder(copy, EXAMPLE) / ANSWERS
    answers = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode({head: rows[:-1] for head, rows in answers.items()}))
    reseal(copy)
    with pytest.raises(BundleCorrupt, match="35 answers of logreg, expected 36"):
        verify_bundle(copy)


def test_centroids_of_fewer_labels(copy: Path) -> None:
    """Centroids of one label fewer are named, with both shapes."""
    change_file(model_folder(copy, EXAMPLE) / CENTROIDS, {"directions": without_last})
    reseal(copy)
    labels = len(load_manifest(copy, EXAMPLE).labels)
    with pytest.raises(BundleCorrupt, match=rf"centroids\.bin .*\({labels - 1}, 384\).*\({labels}, 384\)"):
        verify_bundle(copy)
