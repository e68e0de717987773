"""The estimator of a trained set of heads: fitted, calibrated, its threshold chosen, judged once."""

import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from coldframe.model.bundle import EstimatorFacts
from coldframe.model.files import AUTO
from layers.model.abstain import abstain
from layers.model.anytime import Steps, choose_margin, steps_of, windows_read
from layers.model.cascade import cascade, choose_certainty
from layers.model.embed import ServedEncoder
from layers.model.guesses import Guesses, guesses
from layers.model.lexical import Tokens, fit_lexical, tokens_of, vocabulary_size
from layers.model.samples import Embedded, Task, share_right
from layers.model.train_heads import TrainedHead
from layers.model.usual import thin


class Judged(NamedTuple):
    """The estimator's facts with its accuracies, and `auto` on the test samples as callers send them.

    answers: (n, k). alone: whether the estimator answered alone, (n,). uncalibrated: the answers with an
    estimator without a temperature, (n, k). guessed: what the estimator says of them.
    """

    facts: EstimatorFacts
    guessed: Guesses
    answers: NDArray[np.float64]
    alone: NDArray[np.bool_]
    uncalibrated: NDArray[np.float64]


def train_estimator(
    task: Task,
    test: Embedded,
    best: str,
    partner: TrainedHead,
    encoder: ServedEncoder,
    folder: Path,
    accuracy: float | None = None,
) -> Judged:
    """Writes `estimator.bin` to `folder`, once, trained on everything. best: the name of `partner`.

    accuracy: what `auto` has to reach by abstaining. Raises OutOfReach when it cannot.
    """
    tokens, vocabulary = tokens_of("train", task.train, encoder), vocabulary_size(encoder)
    chosen = choose(tokens, task, partner.held_out, vocabulary, accuracy)
    final = fit_lexical(tokens, task.train.target, vocabulary, folder)
    facts = replace(
        final,
        temperature=chosen.temperature,
        threshold=chosen.threshold,
        settled_margin=chosen.settled_margin,
        partner=best,
        min_probability=chosen.min_probability,
        usual=chosen.usual,
    )
    return judge(facts, tokens_of("test", task.test, encoder), test, partner, folder)


def choose(
    tokens: Tokens, task: Task, partner: Steps, vocabulary: int, accuracy: float | None = None
) -> EstimatorFacts:
    """All that is chosen on the validation rows, by an estimator that has not seen them.

    partner: what a head that has not seen them either says of the validation rows.
    accuracy: as in `train_estimator`.
    """
    held_out, target = tokens.take(task.validation).as_sent, task.train.target
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        facts = fit_lexical(tokens.take(task.fit), target[task.fit], vocabulary, folder)
        bare = guesses(facts, held_out, folder)
    truth = target[task.validation]
    temperature, threshold = choose_certainty(bare, partner.whole, truth)
    guessed = bare.at(temperature)
    certain = replace(
        facts,
        temperature=temperature,
        threshold=threshold,
        settled_margin=choose_margin(guessed, partner, threshold, truth),
        usual=[round(float(value), 4) for value in thin(bare.strangeness)],
    )
    if accuracy is None:
        return certain
    return replace(
        certain, min_probability=abstain(AUTO, _answers(guessed, partner, certain), truth, accuracy)
    )


def judge(
    facts: EstimatorFacts, tokens: Tokens, test: Embedded, partner: TrainedHead, folder: Path
) -> Judged:
    """The estimator on the test split, alone and as `auto`."""
    forms = {form: guesses(facts, documents, folder) for form, documents in tokens.forms.items()}
    steps = {form: steps_of(partner.served.predict, test.windows[form]) for form in forms}
    answers = {form: _answers(guessed, steps[form], facts) for form, guessed in forms.items()}
    alone = {form: guessed.sure(facts.threshold) for form, guessed in forms.items()}
    judged = replace(
        facts,
        accuracy={
            form: round(share_right(guessed.probabilities, test.target), 4) for form, guessed in forms.items()
        },
        auto_accuracy={form: round(share_right(found, test.target), 4) for form, found in answers.items()},
        auto_alone={form: round(float(sure.mean()), 4) for form, sure in alone.items()},
    )
    print(f"estimator {judged.accuracy}, auto {judged.auto_accuracy}, answered alone {judged.auto_alone}")
    bare = guesses(replace(facts, temperature=1.0), tokens.as_sent, folder)
    sent = next(iter(forms))
    return Judged(judged, forms[sent], answers[sent], alone[sent], _answers(bare, steps[sent], facts))


def _answers(guessed: Guesses, partner: Steps, facts: EstimatorFacts) -> NDArray[np.float64]:
    """What `auto` answers, with as many windows read as serving reads: (n, k)."""
    read = windows_read(guessed, partner, facts.settled_margin)
    return cascade(guessed, partner.at(read), facts.threshold)
