"""Trained heads to the arrays that `coldframe.model.heads` reads.

For two classes scikit-learn keeps one linear row. Each converter of a linear head has to make two rows of it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from coldframe_training.embeddings.matrices import Arrays
from coldframe_training.training.head_trainers import TorchMlp


def convert_logreg(model: LogisticRegression) -> Arrays:
    """softmax(x W + b). Of two classes scikit-learn keeps one row, the difference: the other is zero."""
    weight, bias = model.coef_.T, model.intercept_
    if len(bias) == 1:
        weight, bias = np.hstack([np.zeros_like(weight), weight]), np.append(0.0, bias)
    return {"weight": _float32(weight), "bias": _float32(bias)}


def convert_mlp(model: TorchMlp) -> Arrays:
    """Centring and scaling of the input move into the first layer."""
    first, second = model.net[0], model.net[3]
    weight_1 = first.weight / model.scale
    return {
        "weight_1": _float32(weight_1.detach().numpy().T),
        "bias_1": _float32((first.bias - weight_1 @ model.mean).detach().numpy()),
        "weight_2": _float32(second.weight.detach().numpy().T),
        "bias_2": _float32(second.bias.detach().numpy()),
    }


def convert_rf(model: Pipeline) -> Arrays:
    """The table of leaves holds class frequencies in units of 1 / 65535; equal leaves share a row."""
    trees = [tree.tree_ for tree in model[-1].estimators_]
    frequencies = np.concatenate(
        [tree.value[tree.feature < 0, 0, :] for tree in trees]
    )  # sklearn: -2 is a leaf
    table, row = np.unique(np.rint(frequencies * 65535).astype(np.uint16), axis=0, return_inverse=True)
    nodes = [
        Nodes(tree.feature, tree.threshold, tree.children_left, tree.children_right, tree.feature < 0)
        for tree in trees
    ]
    return {**_projection(model), **_join(nodes, row.ravel()), "leaf": table}


def convert_hgb(model: Pipeline) -> Arrays:
    """The trees of class 0, then those of class 1, and so on; their leaves in the same order.

    Of two classes scikit-learn trains the second only. The first has the same trees with opposite values:
    sigmoid(-x) is 1 - sigmoid(x).
    """
    boosters = model[-1].estimators_
    signs = [1.0] * len(boosters)
    if len(boosters) == 1:
        boosters, signs = [boosters[0], boosters[0]], [-1.0, 1.0]
    signed = [
        (sign, predictors[0].nodes)
        for sign, booster in zip(signs, boosters, strict=True)
        for predictors in booster._predictors
    ]
    trees = [tree for _, tree in signed]
    values = np.concatenate([sign * tree["value"][tree["is_leaf"] == 1] for sign, tree in signed])
    nodes = [
        Nodes(tree["feature_idx"], tree["num_threshold"], tree["left"], tree["right"], tree["is_leaf"] == 1)
        for tree in trees
    ]
    rounds = [len(booster._predictors) for booster in boosters]
    return {
        **_projection(model),
        **_join(nodes, np.arange(len(values))),
        "leaf": _float32(values),
        "baseline": np.array(
            [sign * _baseline(booster) for sign, booster in zip(signs, boosters, strict=True)]
        ),
        "first_tree": np.concatenate(([0], np.cumsum(rounds)[:-1])).astype(np.int32),
    }


def _baseline(booster: HistGradientBoostingClassifier) -> float:
    return float(np.ravel(booster._baseline_prediction)[0])


class Nodes(NamedTuple):
    """One tree as scikit-learn holds it, each array (nodes,)."""

    feature: NDArray[np.integer]
    threshold: NDArray[np.float64]
    left: NDArray[np.integer]
    right: NDArray[np.integer]
    is_leaf: NDArray[np.bool_]


def _join(trees: Sequence[Nodes], leaf_rows: NDArray[np.integer]) -> Arrays:
    """Trees end to end. `leaf_rows`: row in the table of leaf values, for each leaf in turn."""
    sizes = [len(tree.feature) for tree in trees]
    roots = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    is_leaf = np.concatenate([tree.is_leaf for tree in trees])
    for tree in trees:
        inner = np.flatnonzero(~tree.is_leaf)
        if not (tree.left[inner] == inner + 1).all():
            raise ValueError(
                "A tree is not in preorder: this version of scikit-learn keeps its nodes in another order."
            )
    right = np.concatenate(
        [tree.right.astype(np.int64) + root for tree, root in zip(trees, roots, strict=True)]
    )
    right[is_leaf] = leaf_rows
    feature = np.concatenate([tree.feature.astype(np.int64) for tree in trees])
    return {
        "roots": roots.astype(np.int32),
        "feature": np.where(is_leaf, -1, feature).astype(np.int16),
        "threshold": _floor_float32(np.concatenate([tree.threshold for tree in trees])),
        "right": right.astype(np.int32),
    }


def _floor_float32(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 not above each value: `x <= value` stays the same for every float32 x."""
    rounded = values.astype(np.float32)
    above = rounded.astype(np.float64) > values
    rounded[above] = np.nextafter(rounded[above], np.float32(-np.inf))
    return rounded


def _projection(model: Pipeline) -> Arrays:
    """The discriminant directions, in float64: the trees compare exactly."""
    turn = model[0]
    return {"projection": turn.scalings_[:, : turn._max_components]}


def _float32(values: NDArray[np.generic]) -> NDArray[np.float32]:
    return np.ascontiguousarray(values, dtype=np.float32)


CONVERTERS: dict[str, Callable[..., Arrays]] = {
    "logreg": convert_logreg,
    "rf": convert_rf,
    "hgb": convert_hgb,
    "mlp": convert_mlp,
}
