"""`auto` beside every single head on the test split: accuracy and throughput in one run.

    COLDFRAME_DATA=FOLDER PYTHONPATH=bench:local:layers/model:layers/shared/python .venv-build/bin/python -m \
        coldframe_bench.studies.throughput

One text per request, no cache; the heads take turns on each text, so that a
noisy machine is noisy for all of them. Ratios are to the best single head.
"""

import sys
import time

import numpy as np

from coldframe.config import Settings
from coldframe.model.files import AUTO
from coldframe.pipeline.models import load_predictor
from coldframe.progress import Progress
from coldframe.vectors import to_floats
from coldframe_training.files.paths import EXAMPLE, MODELS
from coldframe_training.training_data.data import load_split

_SEED = 0


def main(documents: int) -> None:
    """Prints a Markdown table. documents: how many stripped test documents; 0 for all."""
    predictor = load_predictor(Settings(model_dir=MODELS, models=EXAMPLE, verify_at_init=False))
    test = load_split("test")
    order = np.random.default_rng(_SEED).permutation(len(test.stripped))[: documents or None]
    heads = [*predictor.manifest.heads, AUTO]
    spent_s = dict.fromkeys(heads, 0.0)
    right = dict.fromkeys(heads, 0)
    alone = 0
    for row in Progress(order, desc="predict", unit="text"):
        for head in heads:
            started = time.perf_counter()
            prediction = predictor.predict([test.stripped[row]], [head], use_cache=False)
            spent_s[head] += time.perf_counter() - started
            *probabilities, _ = to_floats(prediction.answers[head][0])
            right[head] += int(np.argmax(probabilities) == test.target[row])
            alone += prediction.usage.estimated
    best = max(predictor.manifest.heads, key=lambda head: right[head])
    print("| head | accuracy | texts/s | ratio |\n|---|---|---|---|")
    for head in heads:
        rate, ratio = len(order) / spent_s[head], spent_s[best] / spent_s[head]
        print(f"| {head} | {right[head] / len(order):.4f} | {rate:.1f} | {ratio:.2f} |")
    print(f"\n{len(order)} texts, one thread; {alone / len(order):.1%} answered by the estimator alone.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
