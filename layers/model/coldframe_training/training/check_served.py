"""The proof that a model answers, once it is served, as training says: to the bit, on rows held out."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coldframe.config import Settings
from coldframe.model.files import AUTO
from coldframe.pipeline.models import load_predictor
from coldframe_training.training_data.samples import Samples

_ROWS = 500
_SCORE_BYTES = 4  # an answer ends with its out-of-distribution score


class AnswersDiffer(Exception):
    """The served model does not answer as the trained one."""


def prove(models: Path, name: str, samples: Samples, expected: Mapping[str, NDArray[np.floating]]) -> None:
    """Compares probabilities (n, k) by head, `auto` among them, with those of a model in the folder `models`.

    Raises AnswersDiffer. The first 500 samples are asked, in the form in which callers send them.
    """
    texts = next(iter(samples.forms.values()))[:_ROWS]
    predictor = load_predictor(Settings(model_dir=models, models=name, verify_at_init=False))
    answers = predictor.predict(texts, [AUTO, *(head for head in expected if head != AUTO)], use_cache=False)
    for head, rows in expected.items():
        embeddings = [row.tobytes() for row in rows[: len(texts)].astype(np.float32)]
        served = [row[:-_SCORE_BYTES] for row in answers.answers[head]]
        differing = sum(a != b for a, b in zip(embeddings, served, strict=True))
        if differing:
            raise AnswersDiffer(
                f"{head} answers {differing:,} of {len(texts):,} held-out rows differently once it is served."
            )
