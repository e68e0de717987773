"""Candidates for `auto`: ways to combine guess and partner, and other estimators, on validation rows.

    COLDFRAME_DATA=FOLDER PYTHONPATH=bench:local:layers/model:layers/shared/python .venv-build/bin/python -m \
        coldframe_bench.studies.ensemble

Every line is the answer of both, always: no text is left to the estimator alone. The test split is not read.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from coldframe_training.embeddings.embed import served_encoder
from coldframe_training.files.paths import DEFAULT_ENCODER, MODELS
from coldframe_training.thresholds.estimator import choose_temperature, combine
from coldframe_training.thresholds.estimator_outputs import Guesses
from coldframe_training.thresholds.lexical import Tfidf, Tokens, tokens_of, vocabulary_size
from coldframe_training.training.head_trainers import CHOSEN, new_head
from coldframe_training.training.newsgroups import load_task
from coldframe_training.training_data.samples import Task, embed_samples, share_right, stack_forms

Answers = NDArray[np.float64]
ByForm = Mapping[str, NDArray[np.floating]]

_PAIR_ROWS = (0, 1 << 16)
_C = (2.0, 5.0)


def main() -> None:
    """Prints a Markdown table."""
    task, encoder = load_task(), served_encoder(MODELS, DEFAULT_ENCODER)
    data = embed_samples("train", task.train, encoder)
    heads: dict[str, ByForm] = {}
    for name in ("mlp", "logreg"):
        head = new_head(name, CHOSEN[name]).fit(*stack_forms(data, task.fit))
        heads[name] = {form: head.predict_proba(rows[task.validation]) for form, rows in data.forms.items()}
    tokens, vocabulary = tokens_of("train", task.train, encoder), vocabulary_size(encoder)
    print("| estimator | temperature | combined | stripped | full | surprise, stripped | full |")
    print("|---|---|---|---|---|---|---|")
    for rows in _PAIR_ROWS:
        for c in _C:
            bare = guesses_with(tokens, task, vocabulary, rows, c)
            _print_lines(f"C {c:g}, {rows:,} pair rows", bare, heads, task)


def guesses_with(tokens: Tokens, task: Task, vocabulary: int, pair_rows: int, c: float) -> dict[str, Guesses]:
    """Guesses for the validation rows by an estimator that also counts pairs of tokens, by form."""
    forms = {
        form: [_with_pairs(ids, vocabulary, pair_rows) for ids in texts]
        for form, texts in tokens.forms.items()
    }
    documents, target = Tokens(forms), task.train.target
    tfidf = Tfidf(documents.take(task.fit).as_sent, vocabulary + pair_rows)
    training_rows = sp.vstack(
        [tfidf.rows(texts) for texts in documents.take(task.fit).forms.values()]
    ).tocsr()
    model = LogisticRegression(C=c, max_iter=300).fit(training_rows, np.tile(target[task.fit], len(forms)))
    held_out = documents.take(task.validation).forms
    rows = len(task.validation)
    all_known, strangeness = np.ones(rows, dtype=bool), np.zeros(rows)
    return {
        form: Guesses(model.predict_proba(tfidf.rows(texts)), all_known, strangeness)
        for form, texts in held_out.items()
    }


def _with_pairs(ids: list[int], vocabulary: int, pair_rows: int) -> list[int]:
    """Tokens, and pairs of neighbours hashed into the rows above `vocabulary`."""
    if not pair_rows:
        return ids
    pairs = [((one * 31337 + other * 2654435761) >> 7) % pair_rows for one, other in pairwise(ids)]
    return [*ids, *(vocabulary + pair for pair in pairs)]


def _print_lines(
    estimator: str, bare: Mapping[str, Guesses], heads: Mapping[str, ByForm], task: Task
) -> None:
    target = task.train.target[task.validation]
    temperature = choose_temperature(next(iter(bare.values())), target)
    by_form = {form: estimates.at(temperature) for form, estimates in bare.items()}
    for name, answer in WAYS.items():
        rows = [
            answer(estimates, heads["mlp"][form], heads["logreg"][form])
            for form, estimates in by_form.items()
        ]
        right = " | ".join(f"{share_right(row, target):.4f}" for row in rows)
        surprise = " | ".join(f"{_surprise(row, target):.3f}" for row in rows)
        print(f"| {estimator} | {temperature} | {name} | {right} | {surprise} |")


def _surprise(answers: Answers, target: NDArray[np.int64]) -> float:
    """Negative log likelihood of the right labels, a row."""
    return float(-np.log(np.maximum(answers[np.arange(len(target)), target], 1e-12)).mean())


def _mean(weight: float) -> Callable[..., Answers]:
    return lambda estimates, partner, _: weight * estimates.probabilities + (1 - weight) * partner


WAYS: dict[str, Callable[..., Answers]] = {
    "estimator alone": lambda estimates, *_: estimates.probabilities,
    **{f"mean, estimator weighs {weight}": _mean(weight) for weight in (0.4, 0.5, 0.6)},
    "mean, mlp and logreg": lambda estimates, mlp, logreg: (estimates.probabilities + (mlp + logreg) / 2) / 2,
    "geometric mean": lambda estimates, mlp, _: combine(estimates, mlp),
    "geometric, mlp and logreg": lambda estimates, mlp, logreg: combine(estimates, (mlp + logreg) / 2),
}


if __name__ == "__main__":
    main()
