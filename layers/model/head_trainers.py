"""The four heads at training time: scikit-learn's and PyTorch's own estimators."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from torch import Tensor, nn

from coldframe.model.encoder import Embeddings

SEED = 20
Parameters = dict[str, str | int | float]


class Estimator(Protocol):
    """What training needs of an estimator."""

    def fit(self, X: Embeddings, y: NDArray[np.int64]) -> "Estimator": ...

    def predict_proba(self, X: Embeddings) -> NDArray[np.floating]: ...


def logreg(c: float) -> Estimator:
    """Multinomial logistic regression with inverse regularisation `c`."""
    return LogisticRegression(C=c, max_iter=500)


def rf(shrinkage: float, trees: int, min_leaf: int) -> Estimator:
    """Random forest on the 19 discriminant directions."""
    forest = RandomForestClassifier(trees, min_samples_leaf=min_leaf, n_jobs=-1, random_state=SEED)
    return _on_discriminants(shrinkage, forest)


def hgb(
    shrinkage: float, rounds: int, leaves: int, learning_rate: float, l2: float, features: float
) -> Estimator:
    """One-vs-rest histogram gradient boosting on the 19 discriminant directions."""
    booster = HistGradientBoostingClassifier(
        max_iter=rounds,
        max_leaf_nodes=leaves,
        learning_rate=learning_rate,
        l2_regularization=l2,
        max_features=features,
        early_stopping=False,
        random_state=SEED,
    )
    return _on_discriminants(shrinkage, OneVsRestClassifier(booster))


def _on_discriminants(shrinkage: float, trees: object) -> Pipeline:
    """Trees cut along axes, and the axes of an embedding mean nothing: turn it first.

    Rao's discriminant directions, the covariance shrunk towards a multiple of
    the identity (Ledoit & Wolf 2004). In float32, as the served head sees them.
    """
    turn = LinearDiscriminantAnalysis(solver="eigen", shrinkage=shrinkage)
    return make_pipeline(turn, FunctionTransformer(np.float32), trees)


class TorchMlp:
    """One wide hidden layer, regularised by dropout and noise on its input."""

    def __init__(self, hidden: int, dropout: float, noise: float, smoothing: float, epochs: int) -> None:
        self._hidden, self._dropout, self._noise = hidden, dropout, noise
        self._smoothing, self._epochs = smoothing, epochs
        self.net: nn.Sequential
        self.mean: Tensor
        self.scale: Tensor

    def fit(self, X: Embeddings, y: NDArray[np.int64]) -> "TorchMlp":
        torch.manual_seed(SEED)
        inputs, target = torch.from_numpy(X), torch.from_numpy(y)
        self.mean, self.scale = inputs.mean(dim=0), inputs.std()
        inputs = (inputs - self.mean) / self.scale
        self.net = nn.Sequential(
            nn.Linear(X.shape[1], self._hidden),
            nn.ReLU(),
            nn.Dropout(self._dropout),
            nn.Linear(self._hidden, 20),
        )
        self._optimise(inputs, target)
        self.net.eval()
        return self

    def _optimise(self, inputs: Tensor, target: Tensor, batch: int = 256, rate: float = 1e-3) -> None:
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
        with torch.no_grad():
            logits = self.net((torch.from_numpy(X) - self.mean) / self.scale)
        return logits.softmax(dim=1).numpy()  # type: ignore[no-any-return]


ESTIMATORS: dict[str, Callable[..., Estimator]] = {"logreg": logreg, "rf": rf, "hgb": hgb, "mlp": TorchMlp}

CHOSEN: dict[str, Parameters] = {
    "logreg": {"c": 0.5},
    "rf": {"shrinkage": 0.2, "trees": 150, "min_leaf": 15},
    "hgb": {"shrinkage": 0.2, "rounds": 60, "leaves": 16, "learning_rate": 0.1, "l2": 10.0, "features": 0.4},
    "mlp": {"hidden": 2048, "dropout": 0.8, "noise": 0.5, "smoothing": 0.1, "epochs": 25},
}
"""By validation, never by the test split: `python -m layers.model.study.tune` shows the rest."""


def build_estimator(name: str, parameters: Parameters) -> Estimator:
    """An untrained estimator of the head `name`."""
    return ESTIMATORS[name](**parameters)


def accuracy(
    estimator: Estimator, embeddings: Embeddings, target: Sequence[int] | NDArray[np.int64]
) -> float:
    """Share of rows whose most probable class is the right one."""
    return float((estimator.predict_proba(embeddings).argmax(axis=1) == np.asarray(target)).mean())
