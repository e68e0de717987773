"""LitServe: one worker per core, batches that form while it works."""

import os

import litserve
from pipeline import Pipeline


class Topics(litserve.LitAPI):
    """One text in, one label out; `predict` sees a batch."""

    def setup(self, device: str) -> None:
        self.pipeline = Pipeline()

    def decode_request(self, request: dict[str, str]) -> str:
        return request["text"]

    def predict(self, texts: list[str]) -> list[dict[str, object]]:
        return self.pipeline.predict(list(texts))

    def encode_response(self, output: dict[str, object]) -> dict[str, object]:
        return output


if __name__ == "__main__":
    api = Topics(max_batch_size=8, batch_timeout=0.002)
    server = litserve.LitServer(api, accelerator="cpu")
    server.run(host="127.0.0.1", port=int(os.environ["PEER_PORT"]), generate_client_file=False)
