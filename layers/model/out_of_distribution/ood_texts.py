"""Texts of other kinds, as a model that was just trained sees them."""

from pathlib import Path

from coldframe.model.bundle import EstimatorFacts
from coldframe.model.estimator import UNTEMPERED
from coldframe.model.heads import Head
from layers.model.embeddings.embed import ServedEncoder, embed_windows, pool
from layers.model.embeddings.matrices import predict_rows
from layers.model.out_of_distribution.other_kinds import other_texts
from layers.model.out_of_distribution.strangeness import Seen
from layers.model.thresholds.estimator import cascade, temper_rows
from layers.model.thresholds.estimator_outputs import guesses
from layers.model.thresholds.lexical import token_ids


def see_others(facts: EstimatorFacts, partner: Head, encoder: ServedEncoder, folder: Path) -> Seen:
    """folder: of the trained estimator. partner: the head that `auto` averages the estimator with."""
    texts = [other.text for other in other_texts()]
    embeddings = pool(embed_windows("texts of other kinds", texts, encoder))
    guessed = guesses(facts, token_ids("texts of other kinds", texts, encoder), folder)
    answers = cascade(guessed, predict_rows(partner, embeddings), facts.threshold)
    temperatures = facts.answer_temperatures or UNTEMPERED
    return Seen(embeddings, guessed, temper_rows(answers, guessed.sure(facts.threshold), temperatures))
