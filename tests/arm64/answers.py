"""Embeddings and answers of one model on this processor, as JSON on standard output.

python -m tests.arm64.answers MODEL_DIR
"""

import sys
from pathlib import Path

import msgspec
import numpy as np

from coldframe.config import Settings
from coldframe.model.bundle import load_golden, load_pair
from coldframe.model.encoder import Encoder, check_golden
from coldframe.model.files import built_models, encoder_folder
from coldframe.model.tokenizer import TextWindows
from coldframe.pipeline.models import load_predictor
from coldframe.vectors import to_floats


class Answers(msgspec.Struct, frozen=True):
    """What one processor makes of the golden texts.

    lowest_cosine: to the golden vectors, those of the original fp32 weights.
    embeddings: of each text. alone: whether every row of a pass is, to the bit, what it is alone.
    probabilities: of each text, by head.
    """

    lowest_cosine: float
    alone: bool
    embeddings: list[list[float]]
    probabilities: dict[str, list[list[float]]]


def main(folder: Path) -> None:
    """Computes and prints."""
    (name,) = built_models(folder)
    manifest, built = load_pair(folder, name)
    own = encoder_folder(folder, built.name)
    golden = load_golden(own)
    encoder, windows = Encoder(own, built.facts, threads=1), TextWindows(own, built.facts)
    rows = np.random.default_rng(0).integers(1000, 29_000, size=(5, 24)).tolist()
    together = encoder.encode(rows)
    texts = [vector.text for vector in golden.vectors]
    predictor = load_predictor(Settings(model_dir=folder, verify_at_init=False))
    heads = [manifest.default_head, *manifest.heads]
    found = predictor.predict(texts, heads, use_cache=False).answers
    answers = Answers(
        lowest_cosine=check_golden(encoder, windows, golden),
        alone=all(encoder.encode([row])[0] == together[i] for i, row in enumerate(rows)),
        embeddings=[to_floats(vector) for vector in predictor.embed(texts).vectors],
        probabilities={head: [to_floats(row) for row in found[head]] for head in heads},
    )
    print(msgspec.json.encode(answers).decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
