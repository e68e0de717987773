"""The models of a server: loaded, checked and used once before the first request."""

import os
from collections.abc import Sequence
from dataclasses import replace

from coldframe.model.bundle import EncoderFacts
from coldframe.model.encoder import TextEncoder
from coldframe.model.files import encoder_folder, model_folder
from coldframe.model.tokenizer import Window
from coldframe.pipeline.models import Models, load_models
from coldframe.pipeline.predictor import Predictor
from coldframe.scheduling.limits import Limits
from coldframe.server.settings import ServerSettings
from coldframe.serving.driver import Driver
from coldframe.serving.schedule import mixes_lengths, schedule_models
from coldframe.timing import NO_DEADLINE
from coldframe.vectors import Vector

_WORKERS_ON_GPU = 2  # while one pass computes, the rows of the other are copied
_TOKENS_ON_GPU = 32_768  # initial size of a pass: some milliseconds of an H200
_TEXT = "This text makes lazily created parts ready."


def load(settings: ServerSettings) -> tuple[Models, Driver]:
    """The models of the settings, ready to answer, and the driver of their passes.

    Raises a BundleError for files that are missing or damaged, and for wrong results on this machine.
    """
    # The tokenizer library reads it at its first call: https://docs.rs/rayon-core (read 2026-11-22)
    os.environ.setdefault("RAYON_NUM_THREADS", str(settings.tokenizer_threads))
    models = load_models(settings)
    driver = schedule_models(models, limits_for(models, settings))
    try:
        if settings.verify_at_init:
            check_golden_texts(models, settings)
        for predictor in models.all():
            predictor.predict([_TEXT], list(predictor.manifest.heads), use_cache=False)  # reads every head
        models.default.cache.set_up()
    except BaseException:
        driver.close()
        raise
    return models, driver


def limits_for(models: Models, settings: ServerSettings) -> Limits:
    """The scheduler's limits. On a GPU passes are larger, and few of them run at a time."""
    if not any(is_on_gpu(predictor) for predictor in models.all()):
        return settings.limits()
    workers = settings.workers or _WORKERS_ON_GPU
    return replace(settings.limits(), workers=workers, budget_tokens=_TOKENS_ON_GPU)


def is_on_gpu(predictor: Predictor) -> bool:
    """Whether its encoder takes rows of several lengths in one pass, as on a GPU."""
    return mixes_lengths(predictor.model.encoder.row_encoder)


class ServedEncoder:
    """The encoder that requests use: rows in, embeddings out, through the shared passes."""

    def __init__(self, encoder: TextEncoder, facts: EncoderFacts) -> None:
        self.dimension = facts.dimension
        self._encoder = encoder

    def encode(self, rows: Sequence[Window]) -> list[Vector]:
        """The embedding (d,) of each row; without a deadline none is missing."""
        vectors = self._encoder.embed([[row] for row in rows], NO_DEADLINE).vectors
        return [vector for vector in vectors if vector is not None]


def check_golden_texts(models: Models, settings: ServerSettings) -> None:
    """Checks golden vectors of each encoder, and golden answers of each model, in the session that serves.

    Raises EncoderDrift or BundleCorrupt.
    """
    from coldframe.model.bundle import load_golden
    from coldframe.model.encoder import check_golden
    from coldframe.model.golden_answers import check_answers, load_answers, probabilities_of_golden
    from coldframe.model.tokenizer import TextWindows

    for predictor in models.all():
        folder = encoder_folder(settings.model_dir, predictor.encoder.name)
        facts = predictor.encoder.facts
        encoder, tokenizer = ServedEncoder(predictor.model.encoder, facts), TextWindows(folder, facts)
        golden = load_golden(folder)
        check_golden(encoder, tokenizer, golden)
        if is_on_gpu(predictor):
            continue  # golden answers belong to int8; `coldframe build --gpu` compares labels
        model = model_folder(settings.model_dir, predictor.manifest.name)
        probabilities = probabilities_of_golden(model, predictor.manifest, encoder, tokenizer, golden)
        check_answers(probabilities, load_answers(model))
