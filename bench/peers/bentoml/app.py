"""BentoML: one service whose API is batchable, so that its dispatcher forms batches."""

import bentoml
from pipeline import Pipeline


@bentoml.service(traffic={"timeout": 30}, workers=1)
class Topics:
    """Texts in, labels out."""

    def __init__(self) -> None:
        self.pipeline = Pipeline()

    @bentoml.api(batchable=True, max_batch_size=8, max_latency_ms=1000)
    def predict(self, texts: list[str]) -> list[dict[str, object]]:
        return self.pipeline.predict(texts)
