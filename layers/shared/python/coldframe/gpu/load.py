"""Loads the encoder for the GPU in place of the CPU's encoder that models were trained on."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from coldframe.config import Settings
from coldframe.errors import BundleCorrupt, BundleMissing, DeviceMissing
from coldframe.gpu.device import check_device
from coldframe.gpu.encoder import CUDA, MixedEncoder, plan_mixed
from coldframe.gpu.files import gpu_encoder
from coldframe.gpu.start import Opener, start_encoder
from coldframe.model.bundle import EncoderManifest, load_encoder_manifest, load_golden
from coldframe.model.encoder import TextEncoder
from coldframe.model.files import encoder_folder
from coldframe.model.tokenizer import TextWindows
from coldframe.timing import MovingAverage, log_line, since_ms

PASS_TOKENS = 32_768
"""Positions of one pass of one request: enough to keep an H200 busy for some milliseconds."""
_MS_PER_TOKEN = 0.001  # until passes are measured


class OnGpu(NamedTuple):
    """Parts that models of one encoder share on a GPU.

    manifest: the GPU encoder's, under the CPU encoder's name.
    """

    manifest: EncoderManifest
    tokenizer: TextWindows
    encoder: TextEncoder
    ms_per_token: MovingAverage


def load_on_gpu(
    settings: Settings,
    base: EncoderManifest,
    check: Callable[[], None] = check_device,
    provider: str = CUDA,
    log: Callable[[str], object] = print,
) -> OnGpu | None:
    """The encoder `base`, built for a GPU, loaded and checked; None where the CPU serves instead.

    The device `auto` leaves the work to the CPU without a GPU, or without an encoder built for one; the log
    says which. check: raises DeviceMissing without a GPU. provider: execution provider of onnxruntime.
    Raises DeviceMissing with the device `cuda`, and a BundleError for an encoder that cannot be served.
    """
    started_s = time.monotonic()
    try:
        check()
        manifest = load_gpu_manifest(settings.model_dir, base)
    except (DeviceMissing, BundleMissing) as exc:
        if settings.device == "cuda":
            raise
        log(log_line(event="gpu-not-used", because=str(exc), duration_ms=since_ms(started_s)))
        return None
    manifest = manifest.with_windows(settings.max_windows) if settings.max_windows else manifest
    folder = encoder_folder(settings.model_dir, gpu_encoder(base.name))
    tokenizer = open_tokenizer(folder, manifest)
    encoder = start_encoder(opener(folder, manifest, provider), tokenizer, load_golden(folder), log)
    ms_per_token = MovingAverage(_MS_PER_TOKEN)
    texts = TextEncoder(encoder, settings.max_batch_tokens or PASS_TOKENS, ms_per_token, plan=plan_mixed)
    return OnGpu(replace(manifest, name=base.name), tokenizer, texts, ms_per_token)


def open_tokenizer(folder: Path, manifest: EncoderManifest) -> TextWindows:
    """Tokenizes texts of many requests in parallel, each in the thread of its request.

    Python's own tokenizer would wait for one lock, and the library's own threads are shared by all requests.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    return TextWindows(folder, manifest.facts, use_plain=False)


def opener(folder: Path, manifest: EncoderManifest, provider: str) -> Opener:
    """Opens a graph of the encoder in `folder` by its file's name."""
    return lambda graph: MixedEncoder(folder / graph, manifest.facts.dimension, provider)


def load_gpu_manifest(model_dir: Path, base: EncoderManifest) -> EncoderManifest:
    """The manifest of `base` built for a GPU.

    Raises BundleMissing when it is not built, BundleCorrupt when it was built from another encoder.
    """
    name = gpu_encoder(base.name)
    try:
        manifest = load_encoder_manifest(model_dir, name)
    except BundleMissing as exc:
        raise BundleMissing(
            f"{encoder_folder(model_dir, name)} is missing: the encoder {base.name!r} is not built for a GPU."
            " Run `coldframe build --gpu`."
        ) from exc
    if (manifest.source, manifest.facts) != (base.source, base.facts):
        raise BundleCorrupt(
            f"The encoder {name!r} was built from other weights, or for other texts, than {base.name!r}."
            " Run `coldframe build --gpu`."
        )
    return manifest
