"""Candidates for the heads: `.venv-build/bin/python -m coldframe_bench.studies.tune [HEAD…]`.

Prints one line per candidate, as a Markdown table. All numbers are validation
accuracies: a fifth of the discussions of the training split, held out. The
test split is not read.
"""

import sys
from collections.abc import Iterator

from coldframe.progress import Progress
from coldframe_training.embeddings.embed import served_encoder
from coldframe_training.files.paths import DEFAULT_ENCODER, MODELS
from coldframe_training.training.head_trainers import CHOSEN, Parameters, new_head
from coldframe_training.training.newsgroups import load_task
from coldframe_training.training_data.samples import (
    Embedded,
    Rows,
    Samples,
    embed_samples,
    share_right,
    stack_forms,
)

CANDIDATES: dict[str, list[Parameters]] = {
    "logreg": [{"c": c} for c in (0.25, 0.5, 1.0, 2.0, 4.0)],
    "rf": [
        {"shrinkage": shrinkage, "trees": 150, "min_leaf": min_leaf}
        for shrinkage in (0.05, 0.2, 0.5)
        for min_leaf in (5, 15)
    ],
    "hgb": [
        CHOSEN["hgb"],
        {**CHOSEN["hgb"], "shrinkage": 0.05},
        {**CHOSEN["hgb"], "features": 1.0},
        {**CHOSEN["hgb"], "leaves": 8, "rounds": 80},
        {**CHOSEN["hgb"], "leaves": 6, "rounds": 150, "learning_rate": 0.05, "l2": 20.0},
    ],
    "mlp": [
        CHOSEN["mlp"],
        {**CHOSEN["mlp"], "hidden": 512},
        {**CHOSEN["mlp"], "noise": 0.0},
        {**CHOSEN["mlp"], "dropout": 0.5},
        {**CHOSEN["mlp"], "smoothing": 0.0},
    ],
}
WINDOWS = (1, 2, 4)


def main(names: list[str]) -> None:
    """Tries the candidates of the heads named, or of all; `windows` tries numbers of windows."""
    task, encoder = load_task(), served_encoder(MODELS, DEFAULT_ENCODER)
    data = embed_samples("train", task.train, encoder)
    print("| head | parameters | stripped | full |\n|---|---|---|---|")
    for name, parameters in Progress(list(_candidates(names)), desc="tune", unit="candidate"):
        settings = ", ".join(f"{key} {value}" for key, value in parameters.items())
        scores = validate(name, parameters, data, task.fit, task.validation)
        Progress.write(f"| {name} | {settings} | {scores['stripped']:.4f} | {scores['full']:.4f} |")
    stripped_only = Samples({"stripped": task.train.forms["stripped"]}, task.train.target)
    for windows in WINDOWS if "windows" in names or not names else ():
        shortened = encoder._replace(manifest=encoder.manifest.with_windows(windows))
        few = embed_samples("train", stripped_only, shortened)
        scores = validate("logreg", CHOSEN["logreg"], few, task.fit, task.validation)
        print(f"| logreg, stripped only | windows {windows} | {scores['stripped']:.4f} | |")


def validate(
    name: str, parameters: Parameters, data: Embedded, fit: Rows, validation: Rows
) -> dict[str, float]:
    """Accuracy on the validation rows in each form, trained on the rows `fit` in all forms."""
    head = new_head(name, parameters).fit(*stack_forms(data, fit))
    target = data.target[validation]
    return {
        form: share_right(head.predict_proba(embeddings[validation]), target)
        for form, embeddings in data.forms.items()
    }


def _candidates(names: list[str]) -> Iterator[tuple[str, Parameters]]:
    for name, candidates in CANDIDATES.items():
        if not names or name in names:
            for parameters in candidates:
                yield name, parameters


if __name__ == "__main__":
    main(sys.argv[1:])
