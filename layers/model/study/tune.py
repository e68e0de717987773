"""What was tried for the heads: `.venv-build/bin/python -m layers.model.study.tune [HEAD…]`.

Prints one line per candidate, as a Markdown table. All numbers are validation
accuracies: a fifth of the discussions of the training split, held out. The
test split is not read.
"""

import sys
from collections.abc import Iterator

import msgspec
from tqdm import tqdm

from layers.model.build import ENCODER_FACTS, read_metrics
from layers.model.data import load_split, threads_of
from layers.model.embed import embed
from layers.model.head_trainers import CHOSEN, Parameters, accuracy, build_estimator
from layers.model.paths import CACHE
from layers.model.train_heads import Embedded, both_kinds, embed_split, held_out_split

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
    split = load_split("train")
    folder, graph = CACHE / "encoder", read_metrics().encoder_graph
    data = embed_split("train", split, folder, graph)
    rows, held_out = held_out_split(threads_of(split.full))
    print("| head | parameters | stripped | full |\n|---|---|---|---|")
    for name, parameters in tqdm(list(_candidates(names)), desc="tune", unit="candidate"):
        estimator = build_estimator(name, parameters).fit(*both_kinds(data, rows))
        stripped = accuracy(estimator, data.stripped[held_out], data.target[held_out])
        full = accuracy(estimator, data.full[held_out], data.target[held_out])
        settings = ", ".join(f"{key} {value}" for key, value in parameters.items())
        tqdm.write(f"| {name} | {settings} | {stripped:.4f} | {full:.4f} |")
    for windows in WINDOWS if "windows" in names or not names else ():
        facts = msgspec.structs.replace(ENCODER_FACTS, max_windows=windows)
        stripped_only = embed("train-stripped", split.stripped, folder, facts, graph)
        few = Embedded(stripped_only, stripped_only, data.target)
        estimator = build_estimator("logreg", CHOSEN["logreg"]).fit(few.stripped[rows], few.target[rows])
        found = accuracy(estimator, few.stripped[held_out], few.target[held_out])
        print(f"| logreg, stripped only | windows {windows} | {found:.4f} | |")


def _candidates(names: list[str]) -> Iterator[tuple[str, Parameters]]:
    for name, candidates in CANDIDATES.items():
        if not names or name in names:
            for parameters in candidates:
                yield name, parameters


if __name__ == "__main__":
    main(sys.argv[1:])
