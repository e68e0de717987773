"""Texts of other kinds, as a model that was just trained sees them."""

from pathlib import Path

from coldframe.model.bundle import EstimatorFacts
from coldframe.model.estimator import UNTEMPERED
from coldframe.model.heads import Head
from layers.model.cascade import cascade, temper_rows
from layers.model.embed import ServedEncoder, embed_windows, pool
from layers.model.guesses import guesses
from layers.model.lexical import token_ids
from layers.model.matrices import predict_rows
from layers.model.other_kinds import other_texts
from layers.model.strangeness import Seen


def see_others(facts: EstimatorFacts, partner: Head, encoder: ServedEncoder, folder: Path) -> Seen:
    """folder: of the trained estimator. partner: the head that `auto` averages the estimator with."""
    texts = [other.text for other in other_texts()]
    embeddings = pool(embed_windows("texts of other kinds", texts, encoder))
    guessed = guesses(facts, token_ids("texts of other kinds", texts, encoder), folder)
    answers = cascade(guessed, predict_rows(partner, embeddings), facts.threshold)
    temperatures = facts.answer_temperatures or UNTEMPERED
    return Seen(embeddings, guessed, temper_rows(answers, guessed.sure(facts.threshold), temperatures))
