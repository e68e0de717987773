"""The head `ensemble` beside single heads, all of them, and budgets: times of warm requests, in one run.

    COLDFRAME_DATA=FOLDER PYTHONPATH=bench:local:layers/model:layers/shared/python .venv-build/bin/python -m \
        coldframe_bench.studies.ensemble_times [DOCUMENTS]

One text per request, no cache, one thread, in time of the processor: other processes do not count. The kinds
of requests take turns on each text, in random order. Budgets are in time of the processor, too.
"""

import sys
import time

import numpy as np

from coldframe.config import Settings
from coldframe.model.files import AUTO, ENSEMBLE
from coldframe.pipeline.models import load_predictor
from coldframe.pipeline.predictor import Predictor
from coldframe.progress import Progress
from coldframe.timing import NO_DEADLINE, Deadline
from coldframe_training.files.paths import EXAMPLE, MODELS
from coldframe_training.training_data.data import load_split

_SEED = 0
_HEAD = "logreg"
_BUDGETS_MS = (5, 20, 30, 50)
_WARM_UPS = 20


class Requests:
    """One kind of request: its times, the members that answered, and how many texts it had right."""

    def __init__(self, heads: list[str], budget_ms: int | None = None) -> None:
        self._heads = heads
        self._budget_ms = budget_ms
        self.spent_ms: list[float] = []
        self.members: list[int] = []
        self.right = 0

    def send(self, predictor: Predictor, text: str, target: int) -> None:
        started_s = time.process_time()
        budget_ms = self._budget_ms
        deadline = NO_DEADLINE
        if budget_ms is not None:
            deadline = Deadline(budget_ms / 1e3, time.process_time, is_budget=True)
        prediction = predictor.predict([text], self._heads, use_cache=False, deadline=deadline)
        self.spent_ms.append((time.process_time() - started_s) * 1e3)
        self.members.append(len(prediction.members))
        *probabilities, _ = np.frombuffer(prediction.answers[self._heads[0]][0], dtype=np.float32)
        self.right += int(np.argmax(probabilities) == target)


def main(documents: int) -> None:
    """Prints a Markdown table. documents: how many stripped test documents; 0 for all."""
    predictor = load_predictor(Settings(model_dir=MODELS, models=EXAMPLE, verify_at_init=False))
    single = list(predictor.manifest.heads)
    kinds = {
        f'`["{_HEAD}"]`': Requests([_HEAD]),
        "all four heads": Requests(single),
        '`["auto"]`': Requests([AUTO]),
        '`["ensemble"]`': Requests([ENSEMBLE]),
        **{f"the same, `budget_ms` {ms}": Requests([ENSEMBLE], ms) for ms in _BUDGETS_MS},
    }
    test, chance = load_split("test"), np.random.default_rng(_SEED)
    rows = [row for row, text in enumerate(test.stripped) if text.strip()]
    order = chance.permutation(rows)[: documents or None]
    for row in order[:_WARM_UPS]:
        predictor.predict([test.stripped[row]], [AUTO, *single], use_cache=False)
    for row in Progress(order, desc="predict", unit="text"):
        for name in chance.permutation(list(kinds)):
            kinds[name].send(predictor, test.stripped[row], int(test.target[row]))
    measure = kinds[f'`["{_HEAD}"]`'].spent_ms
    print("| request | p50, ms | p90, ms | p50 ratio | accuracy | members |\n|---|---|---|---|---|---|")
    for name, kind in kinds.items():
        p50, p90 = np.percentile(kind.spent_ms, [50, 90])
        members = f"{np.mean(kind.members):.2f}" if any(kind.members) else ""
        ratio, right = p50 / np.median(measure), kind.right / len(order)
        print(f"| {name} | {p50:.1f} | {p90:.1f} | {ratio:.2f} | {right:.3f} | {members} |")
    print(f"\n{len(order)} texts, one thread. `all four heads`: accuracy of the first, {single[0]}.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
