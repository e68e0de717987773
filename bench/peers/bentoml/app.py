"""BentoML: one service, one worker with a thread per core, one text at a time, or adaptive batches."""

import os

import bentoml
from pipeline import Pipeline


@bentoml.service(traffic={"timeout": 30}, workers=1, threads=int(os.environ["PEER_WORKERS"]))
class Topics:
    """One text in, one label out."""

    def __init__(self) -> None:
        self.pipeline = Pipeline()

    @bentoml.api
    def predict(self, text: str) -> dict[str, object]:
        return self.pipeline.predict([text])[0]

    @bentoml.api(batchable=True, max_batch_size=int(os.environ.get("PEER_BATCH", "2")), max_latency_ms=30_000)
    def predict_many(self, texts: list[str]) -> list[dict[str, object]]:
        """Texts of several requests: BentoML chooses how many, and takes no bound below two."""
        return self.pipeline.predict(texts)
