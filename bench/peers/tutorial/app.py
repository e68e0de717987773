"""The way of a tutorial: sentence-transformers, a scikit-learn pickle, FastAPI."""

import os
from pathlib import Path

import joblib
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

FOLDER = Path(os.environ["PEER_FOLDER"])

app = FastAPI()
model = SentenceTransformer(str(FOLDER / "model"), device="cpu")
model.max_seq_length = 256
head = joblib.load(FOLDER / "head.joblib")


class Asked(BaseModel):
    """One text."""

    text: str


@app.post("/predict")
def predict(asked: Asked) -> dict[str, object]:
    """Label and probability of one text."""
    embedding = model.encode([asked.text], normalize_embeddings=True, show_progress_bar=False)
    probabilities = head.predict_proba(embedding)[0]
    best = int(probabilities.argmax())
    return {"label": str(head.classes_[best]), "probability": float(probabilities[best])}
