"""Weights to the model bundle: `coldframe build`."""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

import msgspec
from tqdm import tqdm

from coldframe.model.bundle import EncoderFacts, Source
from coldframe.model.files import ENCODER, TOKENIZER, VOCABULARY
from coldframe.model.verify import verify_bundle
from coldframe.model.vocabulary import write_vocabulary
from layers.model.assemble import EncoderPart, copy_classifier, write_manifest
from layers.model.paths import BUNDLE, CACHE, CALIBRATION, GOLDEN_VECTORS, TRAINED
from layers.model.publish import copy_into, whole_folder
from layers.model.weights import LICENCE, MODEL, SHA256, WeightsNotFound, find_weights

NAME = "topics"
ENCODER_FACTS = EncoderFacts(dimension=384, max_tokens=256, max_windows=4)
_BUILT_WITH = ("onnxruntime", "optimum", "optimum-onnx", "torch", "transformers")


def main(weights: Path) -> None:
    """Builds the bundle beside the old one, verifies it, and only then takes its place."""
    bar: tqdm[NoReturn] = tqdm(total=4, desc="build", unit="step")
    with whole_folder(BUNDLE) as folder, bar:
        with step(bar, "export and quantize the encoder (20 s)"):
            graph = build_encoder(weights, folder / ENCODER)
        with step(bar, "copy heads, tokenizer and golden vectors"):
            write_tokenizer(weights, folder)
            copy_into(folder, GOLDEN_VECTORS)
            copy_classifier(TRAINED, folder)
        with step(bar, "write the manifest"):
            source = Source(model=MODEL, sha256=SHA256["model.safetensors"], licence=LICENCE)
            write_manifest(folder, NAME, TRAINED, EncoderPart(ENCODER_FACTS, graph, source, built_with()))
        with step(bar, "verify"):
            report = verify_bundle(folder)
    print(f"{BUNDLE}: {report.version}, lowest cosine to the golden vectors {report.lowest_cosine:.4f}")


@contextmanager
def step(bar: "tqdm[NoReturn]", text: str) -> Iterator[None]:
    """Names the step while it runs, and moves the progress bar on when it is done."""
    bar.set_postfix_str(text)
    yield
    bar.update()


def build_encoder(weights: Path, target: Path) -> str:
    """Exports and quantizes with the committed ranges. Returns the digest of the graph."""
    # Imported here: torch and transformers take seconds, a wrong argument should not.
    from layers.model.export import export_fp32
    from layers.model.quantize import Ranges, quantize

    ranges = msgspec.json.decode(CALIBRATION.read_bytes(), type=Ranges)
    with tempfile.TemporaryDirectory() as scratch:
        fp32 = Path(scratch) / "fp32.onnx"
        export_fp32(weights, fp32)
        return f"sha256:{quantize(fp32, ranges, target)}"


def write_tokenizer(weights: Path, folder: Path) -> None:
    """The original tokenizer without truncation and padding, as windows are cut by us; its tokens by id."""
    tokenizer = json.loads((weights / "tokenizer.json").read_bytes())
    tokenizer["truncation"] = tokenizer["padding"] = None
    content = json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":"))
    (folder / TOKENIZER).write_text(content, encoding="utf-8")
    (folder / VOCABULARY).write_bytes(write_vocabulary(tokenizer["model"]["vocab"]))


def built_with() -> dict[str, str]:
    """Versions of what makes the encoder."""
    return {name: version(name).partition("+")[0] for name in _BUILT_WITH}


def weights_argument(arguments: Sequence[str]) -> Path:
    """The folder of the weights: the one given, or wherever they can be had. Without any, the end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", type=Path, default=None)
    try:
        return find_weights(parser.parse_args(arguments).weights, CACHE / "weights")
    except WeightsNotFound as exc:
        sys.exit(f"Error: {exc}")


if __name__ == "__main__":
    main(weights_argument(sys.argv[1:]))
