"""Ray Serve: one replica per core, one text at a time."""

import os

from pipeline import Pipeline
from ray import serve
from starlette.requests import Request


@serve.deployment(
    num_replicas=int(os.environ["PEER_WORKERS"]), max_ongoing_requests=64, ray_actor_options={"num_cpus": 1}
)
class Topics:
    """One text in, one label out."""

    def __init__(self) -> None:
        self.pipeline = Pipeline()

    async def __call__(self, request: Request) -> dict[str, object]:
        return self.pipeline.predict([(await request.json())["text"]])[0]


app = Topics.bind()
