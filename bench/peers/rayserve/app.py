"""Ray Serve: one replica, batches by `serve.batch`."""

from pipeline import Pipeline
from ray import serve
from starlette.requests import Request


@serve.deployment(num_replicas=1, max_ongoing_requests=64, ray_actor_options={"num_cpus": 1})
class Topics:
    """One text in, one label out."""

    def __init__(self) -> None:
        self.pipeline = Pipeline()

    @serve.batch(max_batch_size=8, batch_wait_timeout_s=0.002)
    async def predict(self, texts: list[str]) -> list[dict[str, object]]:
        return self.pipeline.predict(texts)

    async def __call__(self, request: Request) -> dict[str, object]:
        return await self.predict((await request.json())["text"])


app = Topics.bind()
