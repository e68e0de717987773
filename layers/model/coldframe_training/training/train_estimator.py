"""The estimator of a trained set of heads: fitted, calibrated, its threshold chosen, judged once."""

import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from coldframe.model.bundle import EstimatorFacts
from coldframe.model.estimator import UNTEMPERED, Estimator
from coldframe.model.files import AUTO
from coldframe_training.embeddings.embed import ServedEncoder
from coldframe_training.embeddings.matrices import predict_rows
from coldframe_training.out_of_distribution.strangeness import thin
from coldframe_training.thresholds.abstaining import abstain
from coldframe_training.thresholds.estimator import choose_certainty, temper_rows
from coldframe_training.thresholds.estimator_outputs import Guesses, Ids, guesses
from coldframe_training.thresholds.lexical import Tokens, fit_lexical, tokens_of, vocabulary_size
from coldframe_training.thresholds.long_texts import choose_margin, steps_of
from coldframe_training.training.answer_calibration import (
    Partner,
    answer_temperatures,
    folds_of,
    join,
    say,
    say_fold,
)
from coldframe_training.training.train_heads import TrainedHead
from coldframe_training.training_data.samples import Embedded, Task, share_right


class HeldOut(NamedTuple):
    """Answers of `auto` to the validation rows by parts that were not trained on them, (n, k).

    alone: whether the estimator answered alone, (n,). strangeness: by the tokens, (n,). tokens: ids of
    each row. unknown: number of tokens that the rows to train on lack, (n,).
    """

    answers: NDArray[np.float64]
    alone: NDArray[np.bool_]
    strangeness: NDArray[np.float64]
    tokens: Ids
    unknown: list[int]


class Judged(NamedTuple):
    """The estimator's facts with its accuracies, and `auto` on the test samples as callers send them.

    answers: (n, k). by_form: the same for each form of the samples. alone: whether the estimator answered
    alone, (n,). uncalibrated: the answers without any temperature, (n, k). guessed: what the estimator says
    of them. held_out: `auto` on the validation rows.
    """

    facts: EstimatorFacts
    guessed: Guesses
    answers: NDArray[np.float64]
    alone: NDArray[np.bool_]
    uncalibrated: NDArray[np.float64]
    held_out: HeldOut
    by_form: dict[str, NDArray[np.float64]]


def train_estimator(
    task: Task,
    train: Embedded,
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
    chosen, held_out = choose(tokens, task, train, best, partner, vocabulary, accuracy)
    final = fit_lexical(tokens, task.train.target, vocabulary, folder)
    facts = replace(chosen, scales=final.scales, bias=final.bias, unseen_idf=final.unseen_idf)
    return judge(facts, tokens_of("test", task.test, encoder), test, partner, folder, held_out)


def choose(
    tokens: Tokens,
    task: Task,
    train: Embedded,
    best: str,
    partner: TrainedHead,
    vocabulary: int,
    accuracy: float | None = None,
) -> tuple[EstimatorFacts, HeldOut]:
    """All that is chosen on the validation rows, by an estimator that has not seen them, and its answers.

    best, partner, accuracy: as in `train_estimator`.
    """
    held_out, target = tokens.take(task.validation).as_sent, task.train.target
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        facts = fit_lexical(tokens.take(task.fit), target[task.fit], vocabulary, folder)
        bare = guesses(facts, held_out, folder)
        unknown = unknown_tokens(facts, held_out, folder)
    truth = target[task.validation]
    temperature, threshold = choose_certainty(bare, partner.held_out.whole, truth)
    guessed = bare.at(temperature)
    certain = replace(
        facts,
        temperature=temperature,
        threshold=threshold,
        settled_margin=choose_margin(guessed, partner.held_out, threshold, truth),
        partner=best,
        usual=[round(float(value), 4) for value in thin(bare.strangeness)],
    )
    said = say(guessed, partner.held_out, certain, truth)
    by = Partner(best, partner.facts.parameters)
    folds = [say_fold(rows, task, train, tokens, by, certain) for rows in folds_of(task)]
    temperatures = answer_temperatures(join(folds) if folds else said)
    tempered = replace(certain, answer_temperatures=temperatures)
    answers = temper_rows(said.answers, said.alone, temperatures)
    rows = HeldOut(answers, said.alone, bare.strangeness, held_out, unknown)
    if accuracy is None:
        return tempered, rows
    return replace(tempered, min_probability=abstain(AUTO, answers, truth, accuracy)), rows


def unknown_tokens(facts: EstimatorFacts, documents: Ids, folder: Path) -> list[int]:
    """Number of each document's tokens that the estimator in `folder` was not trained on."""
    estimator = Estimator(folder, facts)
    return [estimator.count_unknown(ids) for ids in documents]


def judge(
    facts: EstimatorFacts,
    tokens: Tokens,
    test: Embedded,
    partner: TrainedHead,
    folder: Path,
    held_out: HeldOut,
) -> Judged:
    """The estimator on the test split, alone and as `auto`."""
    tempered = facts.answer_temperatures or UNTEMPERED
    forms = {form: guesses(facts, documents, folder) for form, documents in tokens.forms.items()}
    steps = {form: steps_of(partial(predict_rows, partner.served), test.windows[form]) for form in forms}
    said = {form: say(guessed, steps[form], facts, test.target) for form, guessed in forms.items()}
    answers = {form: temper_rows(found.answers, found.alone, tempered) for form, found in said.items()}
    judged = replace(
        facts,
        accuracy={
            form: round(share_right(guessed.probabilities, test.target), 4) for form, guessed in forms.items()
        },
        auto_accuracy={form: round(share_right(found, test.target), 4) for form, found in answers.items()},
        auto_alone={form: round(float(found.alone.mean()), 4) for form, found in said.items()},
    )
    alone = ", ".join(f"{share:.1%}" for share in judged.auto_alone.values())
    print(f"estimator: answers {alone} of the held-out rows alone")
    bare = guesses(replace(facts, temperature=1.0), tokens.as_sent, folder)
    sent = next(iter(forms))
    before = say(bare, steps[sent], facts, test.target).answers
    return Judged(judged, forms[sent], answers[sent], said[sent].alone, before, held_out, answers)
