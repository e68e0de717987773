"""Golden vectors: texts of our own and their fp32 embeddings from the original weights.

`python -m coldframe_training.encoder_build.golden WEIGHTS_FOLDER` writes those of the default encoder,
`encoder/golden.json`, anew. The embeddings come from transformers' own model and tokenizer,
not from our rearranged ones.
"""

import sys
from pathlib import Path

import msgspec
import torch
from torch import Tensor
from transformers import AutoTokenizer

from coldframe.model.bundle import Golden, GoldenVector
from coldframe.model.tokenizer import normalise
from coldframe_training.encoder_build.encoder_folder import EncoderFolder, read_encoder_folder
from coldframe_training.encoder_build.export import load_original
from coldframe_training.encoder_build.weights import MAX_TOKENS, MODEL
from coldframe_training.files.paths import GOLDEN_VECTORS

# int8 reaches 0.973 and more on these texts; a saturating kernel is far below 0.9.
_MIN_COSINE = 0.97

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


class Reference:
    """The encoder as its makers publish it, run by transformers in fp32."""

    def __init__(self, origin: EncoderFolder) -> None:
        """Raises EncoderRefused when weights are missing."""
        self._origin = origin
        self._model = load_original(origin.weights)
        self._tokenizer = AutoTokenizer.from_pretrained(origin.weights)
        self.name = type(self._model).__name__

    def ids(self, text: str) -> list[int]:
        """Token ids of a text with its prefix, as many as the encoder takes, those around it included."""
        text = normalise(self._origin.prefix + text)
        text = text.lower() if self._origin.lower_texts else text
        tokens = self._tokenizer(text, truncation=True, max_length=self._origin.max_tokens)
        return list(tokens["input_ids"])

    def embed(self, text: str) -> Tensor:
        """The pooled last hidden states at length 1, (d,): Reimers & Gurevych 2019, section 3."""
        ids = torch.tensor([self.ids(text)])
        with torch.no_grad():
            output = self._model(input_ids=ids, attention_mask=torch.ones_like(ids))
        hidden = output.last_hidden_state[0]  # (T, d)
        pooled = hidden.mean(dim=0) if self._origin.pooling == "mean" else hidden[0]
        return torch.nn.functional.normalize(pooled, dim=0)


def golden_vectors(reference: Reference, model: str, min_cosine: float) -> Golden:
    """All of `TEXTS`, embedded by the original model."""
    vectors = [GoldenVector(text, [round(x, 6) for x in reference.embed(text).tolist()]) for text in TEXTS]
    return Golden(f"{model}, fp32, transformers' {reference.name}", min_cosine, vectors)


def encode_golden(golden: Golden) -> bytes:
    """The content of `golden.json`."""
    return msgspec.json.format(msgspec.json.encode(golden), indent=0) + b"\n"


if __name__ == "__main__":
    default = read_encoder_folder(Path(sys.argv[1]))._replace(max_tokens=MAX_TOKENS)
    GOLDEN_VECTORS.write_bytes(encode_golden(golden_vectors(Reference(default), MODEL, _MIN_COSINE)))
