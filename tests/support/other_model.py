"""A model on an encoder other than the default one: trained, verified and proved, in the build environment.

`python -m tests.support.other_model ENCODER FACTS GRAPH TARGET`: the encoder's served files, its facts
as JSON, the digest of its graph, and the folder that encoder and model are written to.
"""

import random
import shutil
import sys
import tempfile
from pathlib import Path

import msgspec
import numpy as np

from coldframe.model.bundle import EncoderFacts, Source
from coldframe.model.files import encoder_folder, model_folder
from coldframe.model.verify import load_whole_encoder
from coldframe_training.embeddings.embed import served_encoder
from coldframe_training.encoder_build.make_encoder import built_with
from coldframe_training.publishing.assemble import EncoderPart, assemble, write_encoder_manifest
from coldframe_training.training.check_served import prove
from coldframe_training.training.head_trainers import scale_parameters
from coldframe_training.training.train import train
from coldframe_training.training_data.samples import Samples, Task

_SAID = {
    "deutsch": "die Rechnung der Zug nach Köln fährt heute über Straße Brücke und Können bitte",
    "english": "the parcel arrived late and please change my order thanks for your account",
    "русский": "код подтверждения не приходит весной река выходит из берегов и заливает луга",
}
WORDS = {label: said.split() for label, said in _SAID.items()}
ENCODER, MODEL = "random", "languages"
"""Names of the encoder, and of the model that tells these languages apart."""

_EACH = 40


def samples(seed: int) -> Samples:
    """Rows of words of one language each, in turns."""
    dice = random.Random(seed)
    rows = [" ".join(dice.choices(WORDS[label], k=12)) for _ in range(_EACH) for label in WORDS]
    return Samples({"text": rows}, np.tile(np.arange(len(WORDS)), _EACH))


def main(encoder: Path, facts: EncoderFacts, graph: str, target: Path) -> None:
    """Trains, and writes encoder and model. Raises unless the model answers as it was trained."""
    shutil.copytree(encoder, encoder_folder(target, ENCODER))
    part = EncoderPart(facts, graph, Source("random", "0" * 64, "none"), built_with())
    write_encoder_manifest(encoder_folder(target, ENCODER), ENCODER, part)
    rows = np.random.default_rng(0).permutation(_EACH * len(WORDS))
    task = Task(list(WORDS), samples(0), np.sort(rows[:90]), np.sort(rows[90:]), samples(1))
    parameters = {"logreg": scale_parameters(len(rows), len(WORDS), seed=0)["logreg"]}
    model_folder(target, MODEL).mkdir()
    with tempfile.TemporaryDirectory() as scratch:
        trained = Path(scratch)
        answers = train(task, served_encoder(target, ENCODER), trained, parameters)
        assemble(target, MODEL, trained, load_whole_encoder(target, ENCODER))
    prove(target, MODEL, task.test, answers.probabilities)


if __name__ == "__main__":
    main(
        Path(sys.argv[1]), msgspec.json.decode(sys.argv[2], type=EncoderFacts), sys.argv[3], Path(sys.argv[4])
    )
