"""The model for jobs: answers texts without a caller's time limit."""

from collections.abc import Sequence

from msgspec import UNSET

from coldframe.api.api import text_answers
from coldframe.api.catalogue import find_model
from coldframe.errors import OutOfTime
from coldframe.jobs.records import Options
from coldframe.jobs.worker import Answers
from coldframe.pipeline.models import Models
from coldframe.schemas import PredictRequest
from coldframe.timing import Deadline


class ModelAnswerer:
    """Answers texts by the models of this environment."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def answer(self, texts: Sequence[str], options: Options, deadline: Deadline) -> Answers:
        """Answers each text as `POST /v1/predict` does, but never by a rushed guess: a job can wait.

        Raises RequestError, also where the time is too short for the encoder; BundleError.
        """
        predictor = find_model(self._models, options.model)
        prediction = predictor.predict(texts, options.heads, True, deadline)
        if prediction.is_rushed:
            raise OutOfTime("There is too little time to encode the texts. Send smaller parts.")
        least = UNSET if options.min_probability is None else options.min_probability
        request = PredictRequest(top_k=options.top_k, scores=options.scores, min_probability=least)
        rows = text_answers(prediction, predictor, request)
        predictor.cache.save(prediction.unsaved, deadline.remaining_s())
        return Answers(rows, predictor.manifest.version)
