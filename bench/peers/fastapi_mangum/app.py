"""The way of the samples for Lambda: FastAPI behind Mangum, onnxruntime, transformers' tokenizer, eager."""

import json
import os
from pathlib import Path

import numpy as np
import onnxruntime
from fastapi import FastAPI
from mangum import Mangum
from pydantic import BaseModel
from transformers import AutoTokenizer

FOLDER = Path(os.environ["PEER_FOLDER"])

app = FastAPI()
tokenizer = AutoTokenizer.from_pretrained(FOLDER / "model")
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1  # FastAPI calls `predict` in as many threads as there are callers
session = onnxruntime.InferenceSession(
    str(FOLDER / "model" / "onnx" / "model_quantized.onnx"), options, ["CPUExecutionProvider"]
)
head = dict(np.load(FOLDER / "head.npz"))
labels = json.loads((FOLDER / "labels.json").read_text())


class Asked(BaseModel):
    """One text."""

    text: str


@app.post("/predict")
def predict(asked: Asked) -> dict[str, object]:
    """Label and probability of one text."""
    inputs = tokenizer([asked.text], truncation=True, max_length=256, return_tensors="np")
    inputs = {name: value.astype(np.int64) for name, value in inputs.items()}
    (hidden,) = session.run(["last_hidden_state"], inputs)  # (1, T, d)
    pooled = hidden.mean(axis=1)
    pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
    logits = (pooled @ head["weight"] + head["bias"])[0]
    powers = np.exp(logits - logits.max())
    best = int(powers.argmax())
    return {"label": labels[best], "probability": float(powers[best] / powers.sum())}


handler = Mangum(app, lifespan="off")
