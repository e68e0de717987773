"""The estimator of a trained set of heads: fitted, calibrated, its threshold chosen, judged once."""

import tempfile
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from coldframe.model.bundle import EstimatorFacts
from layers.model.cascade import cascade, choose_temperature, choose_threshold
from layers.model.embed import ServedEncoder
from layers.model.guesses import Guesses, guesses
from layers.model.lexical import Tokens, fit_lexical, tokens_of, vocabulary_size
from layers.model.samples import Embedded, Task, share_right
from layers.model.train_heads import TrainedHead


def train_estimator(
    task: Task, test: Embedded, best: str, partner: TrainedHead, encoder: ServedEncoder, folder: Path
) -> tuple[EstimatorFacts, NDArray[np.float64]]:
    """Writes `estimator.bin` to `folder`, once, trained on everything. best: the name of `partner`.

    Returns its facts, and what `auto` answers for the test samples as callers send them: (n, k).
    """
    tokens, vocabulary = tokens_of("train", task.train, encoder), vocabulary_size(encoder)
    chosen = choose(tokens, task, partner.held_out, vocabulary)
    final = fit_lexical(tokens, task.train.target, vocabulary, folder)
    facts = replace(final, temperature=chosen.temperature, threshold=chosen.threshold, partner=best)
    return judge(facts, tokens_of("test", task.test, encoder), test, partner, folder)


def choose(tokens: Tokens, task: Task, partner: NDArray[np.floating], vocabulary: int) -> EstimatorFacts:
    """Temperature and threshold, by an estimator that has not seen the validation rows.

    partner: probabilities of the validation rows by a head that has not seen them either.
    """
    held_out, target = tokens.take(task.validation).as_sent, task.train.target
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        facts = fit_lexical(tokens.take(task.fit), target[task.fit], vocabulary, folder)

        def guess_at(temperature: float) -> Guesses:
            return guesses(replace(facts, temperature=temperature), held_out, folder)

        temperature = choose_temperature(guess_at, target[task.validation])
        threshold = choose_threshold(guess_at(temperature), partner, target[task.validation])
    return replace(facts, temperature=temperature, threshold=threshold)


def judge(
    facts: EstimatorFacts, tokens: Tokens, test: Embedded, partner: TrainedHead, folder: Path
) -> tuple[EstimatorFacts, NDArray[np.float64]]:
    """With its accuracies on the test split, alone and as `auto`; and the answers of `auto`."""
    alone, both, share = {}, {}, {}
    as_sent: list[NDArray[np.float64]] = []
    for form, documents in tokens.forms.items():
        guessed = guesses(facts, documents, folder)
        answers = cascade(guessed, partner.served.predict(test.forms[form]), facts.threshold)
        as_sent.append(answers)
        alone[form] = round(share_right(guessed.probabilities, test.target), 4)
        both[form] = round(share_right(answers, test.target), 4)
        share[form] = round(float(guessed.sure(facts.threshold).mean()), 4)
    print(f"estimator {alone}, auto {both}, answered by the estimator alone {share}")
    return replace(facts, accuracy=alone, auto_accuracy=both, auto_alone=share), as_sent[0]
