"""LitServe: one worker per core, one text at a time, or batches where PEER_BATCH says so."""

import os

import litserve
from pipeline import Pipeline


class Topics(litserve.LitAPI):
    """One text in, one label out."""

    def setup(self, device: str) -> None:
        self.pipeline = Pipeline()

    def decode_request(self, request: dict[str, str]) -> str:
        return request["text"]

    def predict(self, text: str | list[str]) -> dict[str, object] | list[dict[str, object]]:
        return self.pipeline.predict([text])[0] if isinstance(text, str) else self.pipeline.predict(text)

    def encode_response(self, output: dict[str, object]) -> dict[str, object]:
        return output


if __name__ == "__main__":
    workers = int(os.environ["PEER_WORKERS"])
    batch, wait_s = int(os.environ.get("PEER_BATCH", "1")), float(os.environ.get("PEER_BATCH_WAIT_S", "0"))
    api = Topics(max_batch_size=batch, batch_timeout=wait_s)
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=workers)
    server.run(host="127.0.0.1", port=int(os.environ["PEER_PORT"]), generate_client_file=False)
