"""`auto` with and without its stopping rule: work of one request and throughput, in one run.

    COLDFRAME_DATA=FOLDER PYTHONPATH=bench:local:layers/model:layers/shared/python .venv-build/bin/python -m \
        coldframe_bench.studies.anytime_latency [DOCUMENTS]

One text per request, no cache, one thread, in time of the processor: other processes do not count.
A head with one window of each text is the measure: it does what peers do. All three take turns on each text,
in random order.
"""

import sys
import time
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from coldframe.config import Settings
from coldframe.model.files import AUTO
from coldframe.pipeline.models import load_predictor
from coldframe.pipeline.predictor import Predictor
from coldframe.progress import Progress
from coldframe_training.files.paths import EXAMPLE, MODELS
from coldframe_training.thresholds.long_texts import READ_ALL
from coldframe_training.training_data.data import load_split

_SEED = 0
_HEAD = "logreg"
_MEASURE = f"`{_HEAD}`, one window"


def main(documents: int) -> None:
    """Prints a Markdown table. documents: how many stripped test documents; 0 for all."""
    auto, everything, measure = _predictor(), _all_windows(_predictor()), _predictor(max_windows=1)
    everything.model = measure.model = auto.model  # one session: none finds the other's weights in the caches
    predictors = {
        _MEASURE: (measure, _HEAD),
        "`auto`, all windows": (everything, AUTO),
        "`auto`": (auto, AUTO),
    }
    chance = np.random.default_rng(_SEED)
    texts = [text for text in load_split("test").stripped if text.strip()]
    order = chance.permutation(len(texts))[: documents or None]
    spent_ms: dict[str, list[float]] = {name: [] for name in predictors}
    windows = dict.fromkeys(predictors, 0)
    for row in Progress(order, desc="predict", unit="text"):
        for name in chance.permutation(list(predictors)):
            predictor, head = predictors[name]
            started = time.process_time()
            usage = predictor.predict([texts[row]], [head], use_cache=False).usage
            spent_ms[name].append((time.process_time() - started) * 1e3)
            windows[name] += usage.windows
    one_window = np.array(spent_ms[_MEASURE])
    print("| | p50, ms | p90, ms | p99, ms | p99 ratio | texts/s | ratio | windows per text |")
    print("|---|---|---|---|---|---|---|---|")
    for name, times_ms in spent_ms.items():
        print(_row(name, times_ms, one_window, windows[name] / len(order)))
    print(f"\n{len(order)} texts, one thread.")


def _row(name: str, times_ms: Sequence[float], measure: NDArray[np.float64], windows: float) -> str:
    p50, p90, p99 = np.quantile(times_ms, (0.5, 0.9, 0.99))
    rate, ratio = 1e3 / np.mean(times_ms), measure.mean() / np.mean(times_ms)
    slower = p99 / np.quantile(measure, 0.99)
    return (
        f"| {name} | {p50:.1f} | {p90:.1f} | {p99:.1f} | {slower:.2f} | {rate:.1f} | {ratio:.2f} |"
        f" {windows:.3f} |"
    )


def _predictor(max_windows: int = 0) -> Predictor:
    settings = Settings(model_dir=MODELS, models=EXAMPLE, verify_at_init=False, max_windows=max_windows)
    predictor = load_predictor(settings)
    return predictor


def _all_windows(predictor: Predictor) -> Predictor:
    facts = replace(predictor.manifest.estimator, settled_margin=READ_ALL)
    predictor.manifest = replace(predictor.manifest, estimator=facts)
    return predictor


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
