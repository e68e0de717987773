"""Golden vectors: texts of our own and their fp32 embeddings from the original weights.

`python -m layers.model.golden WEIGHTS_FOLDER` writes `encoder/golden.json` anew.
The embeddings come from transformers' own model, not from our rearranged one.
"""

import sys
from pathlib import Path

import msgspec
import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import BertModel

from coldframe.model.bundle import Golden, GoldenVector
from layers.model.export import load_original
from layers.model.paths import GOLDEN_VECTORS
from layers.model.weights import MODEL

# int8 reaches 0.987 and more on these texts; a saturating kernel is far below 0.9.
_MIN_COSINE = 0.97
_MAX_TOKENS = 256

TEXTS = [
    "The shuttle reached orbit",
    "My graphics card shows garbage when I rotate the polygon mesh.",
    "Which driver do I need for this window manager?",
    "The SCSI controller does not find the second hard disk at boot.",
    "Is the new laptop worth its price, or should I wait for the faster processor?",
    "The X server crashes as soon as I open a second xterm.",
    "For sale: mountain bike, hardly used, best offer takes it.",
    "The clutch slips in third gear and the dealer wants a fortune.",
    "I ride to work every day, even in the rain; a good helmet is worth it.",
    "He pitched seven innings and struck out nine batters.",
    "The goalie made forty saves and they still lost in overtime.",
    "A public key cipher is only as strong as its random numbers.",
    "Solder the capacitor across the supply pins of the amplifier.",
    "The patient was given antibiotics, and the fever went down within two days.",
    "The probe will pass the moon and take pictures of its far side.",
    "What did the author of this gospel mean by grace?",
    "The bill would require a waiting period for every handgun.",
    "The two governments signed a cease-fire along the border.",
    "The president answered questions about taxes and jobs.",
    "Is morality possible without a god? I think it is.",
    "hello",
    "?",
    "",
    "42",
    "ALL CAPITALS AND!!! MANY??? MARKS...",
    "naïve café, Ångström, Straße, señor",
    "東京は今日も雨です。",
    "Привет, как дела?",
    "🚀 to the moon 🌕",
    "x = [i ** 2 for i in range(10) if i % 2]",
    "Visit http://example.com/a/b?c=d#e or write to nobody@example.org",
    "tab\tseparated\nand\r\nbroken   lines",
    "pneumonoultramicroscopicsilicovolcanoconiosis",
    "The telescope was pointed at a faint galaxy. " * 4,
    "Please explain how the engine is cooled, step by step, for somebody new to it. " * 9,
    "A long letter about nothing in particular, written on a slow train. " * 30,
]


def original_embedding(model: BertModel, tokenizer: Tokenizer, text: str) -> Tensor:
    """Mean of the last hidden states at length 1: Reimers & Gurevych 2019, section 3."""
    ids = tokenizer.encode(" ".join(text.split())).ids
    with torch.no_grad():
        hidden = model(torch.tensor([ids])).last_hidden_state[0]  # (T, d)
    return torch.nn.functional.normalize(hidden.mean(dim=0), dim=0)


def golden_vectors(weights: Path) -> Golden:
    """All of `TEXTS`, embedded by the original model."""
    model = load_original(weights)
    tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_MAX_TOKENS)
    vectors = [
        GoldenVector(text, [round(x, 6) for x in original_embedding(model, tokenizer, text).tolist()])
        for text in TEXTS
    ]
    return Golden(source=f"{MODEL}, fp32, transformers' BertModel", min_cosine=_MIN_COSINE, vectors=vectors)


if __name__ == "__main__":
    content = msgspec.json.format(msgspec.json.encode(golden_vectors(Path(sys.argv[1]))), indent=0)
    GOLDEN_VECTORS.write_bytes(content + b"\n")
