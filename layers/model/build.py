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
from coldframe.model.files import ENCODER, TOKENIZER, VOCABULARY, encoder_folder
from coldframe.model.verify import verify_encoder, verify_model
from coldframe.model.vocabulary import write_vocabulary
from layers.model.assemble import EncoderPart, copy_classifier, write_encoder_manifest, write_manifest
from layers.model.paths import CACHE, CALIBRATION, DEFAULT_ENCODER, EXAMPLE, GOLDEN_VECTORS, MODELS, TRAINED
from layers.model.publish import copy_into, whole_encoder, whole_model
from layers.model.weights import LICENCE, MODEL, SHA256, WeightsNotFound, find_weights

ENCODER_FACTS = EncoderFacts(dimension=384, max_tokens=256, max_windows=4)
_BUILT_WITH = ("onnxruntime", "optimum", "optimum-onnx", "torch", "transformers")


def main(weights: Path) -> None:
    """Builds encoder and example beside the old ones, verifies them, and only then takes their places."""
    bar: tqdm[NoReturn] = tqdm(total=4, desc="build", unit="step")
    with bar:
        with whole_encoder(MODELS, DEFAULT_ENCODER) as stage:
            folder = encoder_folder(stage, DEFAULT_ENCODER)
            with step(bar, "export and quantize the encoder (20 s)"):
                graph = build_encoder(weights, folder / ENCODER)
            with step(bar, "tokenizer, golden vectors and manifest"):
                write_tokenizer(weights, folder)
                copy_into(folder, GOLDEN_VECTORS)
                source = Source(model=MODEL, sha256=SHA256["model.safetensors"], licence=LICENCE)
                encoder = write_encoder_manifest(
                    folder, DEFAULT_ENCODER, EncoderPart(ENCODER_FACTS, graph, source, built_with())
                )
            with step(bar, "verify the encoder"):
                report = verify_encoder(stage, DEFAULT_ENCODER)
        with step(bar, "heads of the example"), whole_model(MODELS, EXAMPLE) as stage:
            copy_classifier(TRAINED, stage / EXAMPLE)
            write_manifest(stage / EXAMPLE, EXAMPLE, TRAINED, encoder)
            model = verify_model(stage, EXAMPLE)
    print(
        f"{DEFAULT_ENCODER} {report.version}, lowest cosine to the golden vectors {report.lowest_cosine:.4f}"
    )
    print(f"{EXAMPLE} {model.version}, in {MODELS}")


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
