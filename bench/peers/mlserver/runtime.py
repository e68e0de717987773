"""MLServer: a runtime of our own, one process per core; batches where the environment says so."""

from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.types import InferenceRequest, InferenceResponse
from pipeline import Pipeline


class Topics(MLModel):
    """BYTES in, labels out."""

    async def load(self) -> bool:
        self.pipeline = Pipeline()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        texts = StringCodec.decode_input(payload.inputs[0])
        labels = [str(answer["label"]) for answer in self.pipeline.predict(texts)]
        return InferenceResponse(model_name=self.name, outputs=[StringCodec.encode_output("label", labels)])
