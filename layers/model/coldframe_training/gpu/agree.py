"""Do models answer on a GPU what they answer on a CPU? Compared on the golden texts, when both are built.

Heads were trained on int8 embeddings. Those in fp16 are closer to the original's, and not the same: an answer
may change where two labels are about as probable, and nowhere else.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coldframe.gpu.encoder import MixedEncoder
from coldframe.gpu.files import PADDED, gpu_encoder
from coldframe.model.bundle import EncoderManifest, load_manifest
from coldframe.model.files import built_models, encoder_folder, model_folder
from coldframe.model.golden_answers import probabilities_of_golden
from coldframe.model.verify import LoadedEncoder, load_whole_encoder

TIE = 0.1
"""Where the label differs, one device has to see it lead by less: by less in probability."""

_CPU = "CPUExecutionProvider"


class Agreement(NamedTuple):
    """Agreement between both devices about the golden texts, for the heads of a model.

    largest_lead: largest lead of one label over the other where the devices differ, by the less sure device.
    """

    model: str
    answers: int
    equal: int
    largest_lead: float

    @property
    def is_good(self) -> bool:
        return self.largest_lead <= TIE

    def __str__(self) -> str:
        sentence = f"{self.model}: {self.equal} of {self.answers} golden answers have the label of the CPU"
        if self.equal < self.answers:
            sentence += f"; where not, one of the two leads by {self.largest_lead:.3f} at most"
        return (
            sentence if self.is_good else f"{sentence}: compare the two on texts of your own before you serve"
        )


def agreement_with(models: Path, gpu: EncoderManifest) -> list[Agreement]:
    """How each model that was trained on the same encoder agrees with itself on the other device."""
    names = [name for name in built_models(models) if _serves(models, name) == gpu.name]
    if not names:
        return []
    cpu = load_whole_encoder(models, load_manifest(models, names[0]).encoder.name)
    padded = MixedEncoder(encoder_folder(models, gpu.name) / PADDED, gpu.facts.dimension, _CPU)
    return [_agreement(models, name, cpu, padded) for name in names]


def _serves(models: Path, name: str) -> str:
    return gpu_encoder(load_manifest(models, name).encoder.name)


def _agreement(models: Path, name: str, cpu: LoadedEncoder, gpu: MixedEncoder) -> Agreement:
    folder, manifest = model_folder(models, name), load_manifest(models, name)
    expected = probabilities_of_golden(folder, manifest, cpu.encoder, cpu.tokenizer, cpu.golden)
    probabilities = probabilities_of_golden(folder, manifest, gpu, cpu.tokenizer, cpu.golden)
    leads = [_lead(expected[head], probabilities[head]) for head in manifest.heads]
    every = np.concatenate(leads)
    return Agreement(name, len(every), int(np.sum(every == 0)), float(every.max(initial=0.0)))


def _lead(cpu: Sequence[Sequence[float]], gpu: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """By how much one device's label leads the other's, where it is less; 0 where they are one: (texts,)."""
    before, after = np.asarray(cpu), np.asarray(gpu)
    texts, old, new = np.arange(len(before)), before.argmax(axis=1), after.argmax(axis=1)
    lead: NDArray[np.float64] = np.minimum(
        before[texts, old] - before[texts, new], after[texts, new] - after[texts, old]
    )
    return lead
