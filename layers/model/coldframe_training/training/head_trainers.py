"""Heads at training time: models of scikit-learn and PyTorch, for any number of classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from coldframe_training.embeddings.matrices import Embeddings
from coldframe_training.training_data.samples import SEED

if TYPE_CHECKING:
    from torch import Tensor, nn

Parameters = dict[str, str | int | float]


class TrainableHead(Protocol):
    """Interface of a head for training."""

    def fit(self, X: Embeddings, y: NDArray[np.int64]) -> TrainableHead:
        """Trained on embeddings (n, d) and their classes (n,): all of 0 to k - 1, each at least once."""

    def predict_proba(self, X: Embeddings) -> NDArray[np.floating]: ...


def logreg(c: float) -> TrainableHead:
    """Multinomial logistic regression with inverse regularisation `c`; nothing in it is drawn at random."""
    return cast(TrainableHead, LogisticRegression(C=c, max_iter=500))


def rf(shrinkage: float, trees: int, min_leaf: int, seed: int = SEED) -> TrainableHead:
    """Random forest on the discriminant directions, one fewer than classes."""
    forest = RandomForestClassifier(trees, min_samples_leaf=min_leaf, n_jobs=-1, random_state=seed)
    return cast(TrainableHead, _on_discriminants(shrinkage, forest))


def hgb(
    shrinkage: float,
    rounds: int,
    leaves: int,
    learning_rate: float,
    l2: float,
    features: float,
    min_leaf: int = 20,
    seed: int = SEED,
) -> TrainableHead:
    """One-vs-rest histogram gradient boosting on the discriminant directions, one fewer than classes."""
    booster = HistGradientBoostingClassifier(
        max_iter=rounds,
        max_leaf_nodes=leaves,
        learning_rate=learning_rate,
        l2_regularization=l2,
        max_features=features,
        min_samples_leaf=min_leaf,
        early_stopping=False,
        random_state=seed,
    )
    return cast(TrainableHead, _on_discriminants(shrinkage, OneVsRestClassifier(booster, n_jobs=-1)))


def _on_discriminants(shrinkage: float, trees: object) -> Pipeline:
    """Trees cut along axes, and the axes of an embedding mean nothing: turn it first.

    Rao's discriminant directions, the covariance shrunk towards a multiple of
    the identity (Ledoit & Wolf 2004). In float32, as the served head sees them.
    """
    turn = LinearDiscriminantAnalysis(solver="eigen", shrinkage=shrinkage)
    return make_pipeline(turn, FunctionTransformer(np.float32), trees)


class TorchMlp:
    """One wide hidden layer, regularised by dropout and noise on its input."""

    def __init__(
        self, hidden: int, dropout: float, noise: float, smoothing: float, epochs: int, seed: int = SEED
    ) -> None:
        self._hidden, self._dropout, self._noise = hidden, dropout, noise
        self._smoothing, self._epochs, self._seed = smoothing, epochs, seed
        self.net: nn.Sequential
        self.mean: Tensor
        self.scale: Tensor

    def fit(self, X: Embeddings, y: NDArray[np.int64]) -> TorchMlp:
        import torch
        from torch import nn

        torch.manual_seed(self._seed)
        inputs, target = torch.from_numpy(X), torch.from_numpy(y)
        self.mean, self.scale = inputs.mean(dim=0), inputs.std()
        inputs = (inputs - self.mean) / self.scale
        self.net = nn.Sequential(
            nn.Linear(X.shape[1], self._hidden),
            nn.ReLU(),
            nn.Dropout(self._dropout),
            nn.Linear(self._hidden, int(y.max()) + 1),
        )
        self._optimise(inputs, target)
        self.net.eval()
        return self

    def _optimise(self, inputs: Tensor, target: Tensor, batch: int = 256, rate: float = 1e-3) -> None:
        import torch
        from torch import nn

        loss_of = nn.CrossEntropyLoss(label_smoothing=self._smoothing)
        optimizer = torch.optim.AdamW(self.net.parameters(), lr=rate)
        steps = self._epochs * -(-len(inputs) // batch)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
        for _ in range(self._epochs):
            for rows in torch.randperm(len(inputs)).split(batch):
                noisy = inputs[rows] + self._noise * torch.randn(len(rows), inputs.shape[1])
                optimizer.zero_grad()
                loss_of(self.net(noisy), target[rows]).backward()
                optimizer.step()
                schedule.step()

    def predict_proba(self, X: Embeddings) -> NDArray[np.floating]:
        import torch

        with torch.no_grad():
            logits = self.net((torch.from_numpy(X) - self.mean) / self.scale)
        return logits.softmax(dim=1).numpy()  # type: ignore[no-any-return]


TRAINERS: dict[str, Callable[..., TrainableHead]] = {"logreg": logreg, "rf": rf, "hgb": hgb, "mlp": TorchMlp}

CHOSEN: dict[str, Parameters] = {
    "logreg": {"c": 0.5},
    "rf": {"shrinkage": 0.2, "trees": 150, "min_leaf": 15},
    "hgb": {"shrinkage": 0.2, "rounds": 60, "leaves": 16, "learning_rate": 0.1, "l2": 10.0, "features": 0.4},
    "mlp": {"hidden": 2048, "dropout": 0.8, "noise": 0.5, "smoothing": 0.1, "epochs": 25},
}
"""By validation, never by the test split: `python -m coldframe_bench.studies.tune` shows the rest."""


def new_head(name: str, parameters: Parameters) -> TrainableHead:
    """The head `name`, not yet trained."""
    return TRAINERS[name](**parameters)


_STEPS = 300  # of the optimiser, at least: a small table needs more epochs
_ROUNDS_TIMES_CLASSES = 2400  # boosted trees in all, about


def scale_parameters(rows: int, classes: int, seed: int) -> dict[str, Parameters]:
    """CHOSEN for a table of another size than the example's.

    Fewer rows: smaller leaves and more epochs. More classes: fewer rounds of boosting for each. A head that
    is not named here keeps CHOSEN.
    """
    per_class = rows // classes
    chosen = {name: dict(parameters) for name, parameters in CHOSEN.items()}
    leaf = max(2, per_class // 4)
    chosen["rf"] |= {"min_leaf": min(15, leaf), "seed": seed}
    rounds = min(60, max(5, _ROUNDS_TIMES_CLASSES // classes))
    chosen["hgb"] |= {"min_leaf": min(20, leaf), "rounds": rounds, "seed": seed}
    chosen["mlp"] |= {"epochs": max(25, -(-_STEPS // -(-rows // 256))), "seed": seed}
    return chosen
