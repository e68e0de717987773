"""A built encoder for GPUs, beside the one for CPUs: `coldframe build --gpu`."""

import sys
import tempfile
from pathlib import Path

import msgspec

from coldframe.errors import BundleMissing
from coldframe.gpu.encoder import MixedEncoder
from coldframe.gpu.files import MIN_COSINE, PACKED, PADDED, WEIGHTS, gpu_encoder
from coldframe.gpu.start import check_together
from coldframe.model.bundle import EncoderManifest, load_encoder_manifest, load_golden
from coldframe.model.files import ENCODER, GOLDEN, MANIFEST, encoder_folder
from coldframe.model.tokenizer import TextWindows
from coldframe.progress import Progress
from coldframe_training.encoder_build.encoder_folder import EncoderFolder, read_encoder_folder
from coldframe_training.encoder_build.encoders import encoder_name
from coldframe_training.encoder_build.golden import encode_golden
from coldframe_training.encoder_build.make_encoder import Announce, built_with, weights_digest
from coldframe_training.encoder_build.weights import is_default, weights_argument
from coldframe_training.files.errors import EncoderRefused
from coldframe_training.files.paths import DEFAULT_ENCODER, MODELS
from coldframe_training.gpu.agree import agreement_with
from coldframe_training.gpu.graph_files import write_graphs
from coldframe_training.publishing.assemble import EncoderPart, write_encoder_manifest
from coldframe_training.publishing.publish import copy_into, whole_encoder

CPU = "CPUExecutionProvider"
"""Runs the padded graph here, where there may be no GPU: slowly, and with the same weights."""


def build_for_gpu(source: Path, models: Path, announce: Announce = lambda step: None) -> EncoderManifest:
    """Builds the encoder of the weights in `source`, already built for CPUs in `models`, for GPUs.

    The padded graph is checked by its golden vectors, on the CPU. The packed one can run on a GPU only, and
    is checked at each start there.
    Raises BundleMissing without the encoder for CPUs, EncoderRefused when a step does not work.
    """
    base = load_encoder_manifest(models, DEFAULT_ENCODER if is_default(source) else encoder_name(source))
    origin = read_encoder_folder(source)
    if weights_digest(origin.weights) != base.source.sha256:
        raise EncoderRefused(
            f"{origin.weights} holds other weights than the encoder {base.name!r} was built of. Expected the"
            " same: models that were trained on it are served by both."
        )
    name = gpu_encoder(base.name)
    with whole_encoder(models, name) as stage:
        folder = encoder_folder(stage, name)
        copy_shared(encoder_folder(models, base.name), folder, base)
        graph = write_gpu_graphs(origin, folder, announce)
        part = EncoderPart(base.facts, graph, base.source, built_with())
        manifest = write_encoder_manifest(folder, name, part)
        announce("compare fp16 with fp32")
        padded = MixedEncoder(folder / PADDED, base.facts.dimension, CPU)
        check_together(padded, TextWindows(folder, base.facts), load_golden(folder))
    return manifest


def copy_shared(base_folder: Path, folder: Path, base: EncoderManifest) -> None:
    """Files that both devices share: the tokenizer and the golden vectors, to which fp16 has to be closer."""
    golden = msgspec.structs.replace(load_golden(base_folder), min_cosine=MIN_COSINE)
    (folder / GOLDEN).write_bytes(encode_golden(golden))
    for file in base.files:
        if file not in (GOLDEN, ENCODER):
            copy_into(folder, base_folder / file)


def write_gpu_graphs(origin: EncoderFolder, folder: Path, announce: Announce) -> str:
    """Writes both graphs and their weights. Returns `sha256:<hex>` of all. Raises EncoderRefused."""
    # Imported here: torch and transformers take seconds, a wrong argument should not.
    from coldframe_training.gpu.convert import fuse, make_packed, make_padded
    from coldframe_training.gpu.export_hidden import export_hidden

    with tempfile.TemporaryDirectory() as scratch:
        fp32 = Path(scratch) / "fp32.onnx"
        announce("export the encoder (5 s)")
        config = export_hidden(origin.weights, fp32)
        announce("fuse its layers, in fp16")
        fused = fuse(fp32, config)
        announce("remove padding")
        packed = make_packed(fused, config, origin.pooling)
        padded = make_padded(fused, origin.pooling)
        return write_graphs([(packed, folder / PACKED), (padded, folder / PADDED)], folder / WEIGHTS)


def main(weights: Path) -> None:
    """Builds, and says how the models that are built agree on both devices."""
    with Progress(desc="build for GPUs", bar_format="{desc}, {elapsed}: {postfix}") as bar:
        try:
            manifest = build_for_gpu(weights, MODELS, bar.set_postfix_str)
        except (BundleMissing, EncoderRefused) as exc:
            sys.exit(f"Error: {exc}")
        bar.set_postfix_str("compare answers of models")
        agreements = agreement_with(MODELS, manifest)
    print(f"{manifest.name} {manifest.version}, in {encoder_folder(MODELS, manifest.name) / MANIFEST}")
    for agreement in agreements:
        print(agreement)


if __name__ == "__main__":
    main(weights_argument(sys.argv[1:]))
