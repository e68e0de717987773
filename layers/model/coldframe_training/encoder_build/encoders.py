"""Encoders by name, or made of a folder of weights that somebody gives."""

import re
from pathlib import Path

from coldframe.errors import BundleMissing
from coldframe.model.bundle import load_encoder_manifest
from coldframe.model.files import MANIFEST, encoder_folder
from coldframe.model.verify import load_whole_encoder, verify_encoder
from coldframe.progress import Progress
from coldframe_training.embeddings.embed import ServedEncoder, served_encoder
from coldframe_training.encoder_build.encoder_folder import read_encoder_folder
from coldframe_training.encoder_build.make_encoder import make_encoder, weights_digest
from coldframe_training.files.paths import DEFAULT_ENCODER, MODELS
from coldframe_training.publishing.assemble import write_encoder_manifest
from coldframe_training.publishing.publish import share_folder, whole_encoder


def encoder_for(given: str | None, models: Path) -> ServedEncoder:
    """The encoder to train on: a built one by its name, one made of a folder of weights, or the default one.

    Raises a BundleError, or EncoderRefused for weights that no encoder can be made of.
    """
    name = given or DEFAULT_ENCODER
    if (encoder_folder(models, name) / MANIFEST).exists():
        return served_encoder(models, name)
    if (encoder_folder(MODELS, name) / MANIFEST).exists():  # another folder of models gets it
        share_folder(encoder_folder(MODELS, name), encoder_folder(models, name))
        return served_encoder(models, name)
    if not Path(name).is_dir():
        built = sorted(path.parent.name for path in encoder_folder(models, ".").glob(f"[!.]*/{MANIFEST}"))
        raise BundleMissing(
            f"{name} is neither an encoder in {models} (there: {', '.join(built) or 'none'}) nor a folder of"
            " weights. `coldframe build` makes the default encoder."
        )
    return build_encoder_of(Path(name), models)


def build_encoder_of(source: Path, models: Path) -> ServedEncoder:
    """The encoder of a folder of weights, under the folder's name; made once for the same weights.

    Raises EncoderRefused, which names the step that does not work.
    """
    name = encoder_name(source)
    if not _is_built(source, name, models):
        with (
            whole_encoder(models, name) as stage,
            Progress(desc=f"make the encoder {name}", bar_format=_BAR) as bar,
        ):
            part = make_encoder(source, encoder_folder(stage, name), bar.set_postfix_str)
            write_encoder_manifest(encoder_folder(stage, name), name, part)
            verify_encoder(load_whole_encoder(stage, name))
    return served_encoder(models, name)


_BAR = "{desc}, {elapsed}: {postfix}"


def encoder_name(source: Path) -> str:
    """A name of lower-case letters, digits, '.', '_' and '-'."""
    return re.sub(r"[^a-z0-9._-]+", "-", source.resolve().name.lower()).strip("-._") or "encoder"


def _is_built(source: Path, name: str, models: Path) -> bool:
    if not (encoder_folder(models, name) / MANIFEST).exists():
        return False
    weights = read_encoder_folder(source).weights
    return load_encoder_manifest(models, name).source.sha256 == weights_digest(weights)
