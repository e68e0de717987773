"""When `auto` may stop reading a long text: rules, the windows they save, and what they cost.

    COLDFRAME_DATA=FOLDER PYTHONPATH=bench:local:layers/model:layers/shared/python .venv-build/bin/python -m \
        coldframe_bench.studies.anytime [HEADS]

Rules are compared on validation rows; the margin that training would choose is then read once on the test
split, with the heads of a training, the committed ones by default. A text that the estimator is sure of is
never read, whatever the rule.
"""

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from coldframe.model.bundle import EstimatorFacts
from coldframe_training.embeddings.embed import served_encoder
from coldframe_training.embeddings.matrices import predict_rows
from coldframe_training.files.paths import DEFAULT_ENCODER, FACTS, MODELS, TRAINED
from coldframe_training.thresholds.estimator import cascade, combine
from coldframe_training.thresholds.estimator_outputs import Guesses, guesses
from coldframe_training.thresholds.lexical import Tokens, fit_lexical, tokens_of, vocabulary_size
from coldframe_training.thresholds.long_texts import (
    MARGINS,
    READ_ALL,
    Steps,
    choose_margin,
    steps_of,
    windows_read,
)
from coldframe_training.training.head_trainers import CHOSEN, new_head
from coldframe_training.training.newsgroups import load_task
from coldframe_training.training.train_heads import load_saved
from coldframe_training.training_data.samples import Embedded, Task, embed_samples, share_right, stack_forms

_PROBABILITIES = (0.3, 0.4, 0.5, 0.6)
_HEAD = (
    "| form | rule | long texts | agree | accuracy | windows | more than 1 | more than 2 |\n"
    + "|---" * 8
    + "|"
)


class Sample(NamedTuple):
    """Documents of one form, with the outputs of estimator and partner."""

    form: str
    estimates: Guesses
    steps: Steps
    target: NDArray[np.int64]


def main(trained: Path) -> None:
    """Prints two Markdown tables. trained: a folder that `coldframe_training.training.train` wrote."""
    task, encoder = load_task(), served_encoder(MODELS, DEFAULT_ENCODER)
    facts = msgspec.json.decode((trained / FACTS).read_bytes(), type=EstimatorFacts)
    tokens, vocabulary = tokens_of("train", task.train, encoder), vocabulary_size(encoder)
    held_out = validation_of(task, embed_samples("train", task.train, encoder), tokens, vocabulary, facts)
    print(f"Validation\n\n{_HEAD}")
    for sample in held_out:
        for rule, read in rules(sample):
            print(row(sample, facts.threshold, rule, read))
    default_form = held_out[0]
    margin = choose_margin(default_form.estimates, default_form.steps, facts.threshold, default_form.target)
    print(f"\nTest, with the margin chosen\n\n{_HEAD}")
    test = embed_samples("test", task.test, encoder)
    for form, documents in tokens_of("test", task.test, encoder).forms.items():
        steps = steps_of(partial(predict_rows, load_saved(trained, facts.partner)), test.windows[form])
        sample = Sample(form, guesses(facts, documents, trained), steps, test.target)
        print(row(sample, facts.threshold, "all windows", steps.windows))
        print(row(sample, facts.threshold, f"margin {margin}", windows_read(sample.estimates, steps, margin)))


def validation_of(
    task: Task, train: Embedded, tokens: Tokens, vocabulary: int, facts: EstimatorFacts
) -> list[Sample]:
    """The validation rows in each form, by an estimator and a partner that have not seen them."""
    target = task.train.target
    head = new_head(facts.partner, CHOSEN[facts.partner]).fit(*stack_forms(train, task.fit))
    samples = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        bare = fit_lexical(tokens.take(task.fit), target[task.fit], vocabulary, folder)
        for form, documents in tokens.take(task.validation).forms.items():
            windows = [train.windows[form][row] for row in task.validation]
            estimates = guesses(bare, documents, folder).at(facts.temperature)
            steps = steps_of(head.predict_proba, windows)
            samples.append(Sample(form, estimates, steps, target[task.validation]))
    return samples


def rules(sample: Sample) -> list[tuple[str, NDArray[np.int64]]]:
    """Windows read of each document, (n,), by the name of the rule."""
    estimates, steps = sample.estimates, sample.steps
    by_rule = [(f"probability {bound}", _read_by(_highest(bound), sample)) for bound in _PROBABILITIES]
    by_rule += [(f"margin {margin}", windows_read(estimates, steps, margin)) for margin in (0.0, *MARGINS)]
    return [*by_rule, ("all windows", windows_read(estimates, steps, READ_ALL))]


def _highest(bound: float) -> Callable[[NDArray[np.float64]], NDArray[np.bool_]]:
    return lambda means: means.max(axis=1) > bound


def _read_by(
    is_settled: Callable[[NDArray[np.float64]], NDArray[np.bool_]], sample: Sample
) -> NDArray[np.int64]:
    read = sample.steps.windows.copy()
    for number in range(len(sample.steps.after) - 1, 0, -1):
        means = combine(sample.estimates, sample.steps.after[number - 1])
        read[is_settled(means) & (sample.steps.windows > number)] = number
    return read


def row(sample: Sample, threshold: float, rule: str, read: NDArray[np.int64]) -> str:
    """A line of the table. Shares are of all documents; agreement and windows are of the long unsure ones."""
    unsure = ~sample.estimates.sure(threshold)
    long = unsure & (sample.steps.windows > 1)
    answers = cascade(sample.estimates, sample.steps.at(read), threshold)
    whole = cascade(sample.estimates, sample.steps.whole, threshold)
    agreed = share_right(answers[long], whole[long].argmax(axis=1))
    shares = " | ".join(f"{(unsure & (read > number)).mean():.2%}" for number in (1, 2))
    return (
        f"| {sample.form} | {rule} | {long.sum()} | {agreed:.3f} | {share_right(answers, sample.target):.4f}"
        f" | {read[long].mean():.2f} | {shares} |"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else TRAINED)
