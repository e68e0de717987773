"""The encoder and the head for peers that serve whatever they are given: as lean as they come.

Rust tokenizer, int8 ONNX session, a product in numpy. Texts are cut at 256 tokens and padded to the longest.
One thread: servers run as many of these at once as there are cores.
"""

import json
import os
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

FOLDER = Path(os.environ["PEER_FOLDER"])
_MAX_TOKENS = 256


class Pipeline:
    """Texts to labels with their probabilities."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "model" / "tokenizer.json"))
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._tokenizer.enable_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        path = folder / "model" / "onnx" / "model_quantized.onnx"
        self._session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
        self._head = np.load(folder / "head.npz")
        self._labels = json.loads((folder / "labels.json").read_text())

    def predict(self, texts: list[str]) -> list[dict[str, object]]:
        """One label and probability per text."""
        encodings = self._tokenizer.encode_batch(texts)
        ids = np.array([encoding.ids for encoding in encodings], dtype=np.int64)  # (B, T)
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (hidden,) = self._session.run(["last_hidden_state"], inputs)  # (B, T, d)
        pooled = (hidden * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
        logits = pooled @ self._head["weight"] + self._head["bias"]  # (B, k)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities = powers / powers.sum(axis=1, keepdims=True)
        best = probabilities.argmax(axis=1)
        return [
            {"label": self._labels[i], "probability": float(row[i])}
            for i, row in zip(best, probabilities, strict=True)
        ]
