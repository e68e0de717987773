"""Answers of the example's heads to the test split of 20 Newsgroups, with the estimator's confidence."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from coldframe.model.bundle import EstimatorFacts
from coldframe_bench.studies.bandit_replay import Answers
from coldframe_training.embeddings.embed import served_encoder
from coldframe_training.embeddings.matrices import predict_rows
from coldframe_training.files.paths import DEFAULT_ENCODER, FACTS, MODELS, TRAINED
from coldframe_training.thresholds.estimator import cascade
from coldframe_training.thresholds.estimator_outputs import guesses
from coldframe_training.thresholds.lexical import token_ids
from coldframe_training.training.newsgroups import load_task
from coldframe_training.training.train_heads import load_saved
from coldframe_training.training_data.samples import SEED, Samples, embed_samples

HEADS = ("mlp", "logreg", "hgb", "rf")
_FORM = "stripped"
_DOCUMENTS = 3_000


def head_answers() -> Answers:
    """The committed heads' answers to some random documents. Their embeddings are kept for the next run."""
    test, encoder = load_task().test, served_encoder(MODELS, DEFAULT_ENCODER)
    sample = np.random.default_rng(SEED).choice(len(test.target), _DOCUMENTS, replace=False)
    texts, target = [test.forms[_FORM][row] for row in sample], test.target[sample]
    rows = embed_samples("test", Samples({_FORM: texts}, target), encoder).as_sent
    chances = [predict_rows(load_saved(TRAINED, head), rows) for head in HEADS]
    facts = msgspec.json.decode((TRAINED / FACTS).read_bytes(), type=EstimatorFacts)
    estimates = guesses(facts, token_ids("test", texts, encoder), TRAINED)
    own = estimates.probabilities
    auto = cascade(estimates, chances[HEADS.index(facts.partner)], facts.threshold)
    every: list[NDArray[np.floating]] = [*chances, own, auto]
    right = np.array([part.argmax(axis=1) == target for part in every])
    return Answers(right[:-2], own.max(axis=1), right[-2], right[-1])
