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
from coldframe.model.files import ENCODER, TOKENIZER, VOCABULARY, encoder_folder, model_folder
from coldframe.model.verify import load_whole_encoder, verify_encoder
from coldframe.model.vocabulary import write_vocabulary
from layers.model.assemble import EncoderPart, assemble, write_encoder_manifest
from layers.model.paths import CACHE, CALIBRATION, DEFAULT_ENCODER, EXAMPLE, GOLDEN_VECTORS, MODELS, TRAINED
from layers.model.publish import copy_into, whole_encoder, whole_model
from layers.model.report import REPORT_JSON, read_figures, write_report
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
                part = EncoderPart(ENCODER_FACTS, graph, source, built_with())
                write_encoder_manifest(folder, DEFAULT_ENCODER, part)
            with step(bar, "verify the encoder"):
                checked = verify_encoder(load_whole_encoder(stage, DEFAULT_ENCODER))
        with step(bar, "heads of the example"), whole_model(MODELS, EXAMPLE) as stage:
            model = assemble(stage, EXAMPLE, TRAINED, load_whole_encoder(MODELS, DEFAULT_ENCODER))
            if (TRAINED / REPORT_JSON).exists():
                report = msgspec.structs.replace(read_figures(TRAINED), version=model.version)
                write_report(report, model_folder(stage, EXAMPLE))
    lowest = f"lowest cosine to the golden vectors {checked.lowest_cosine:.4f}"
    print(f"{DEFAULT_ENCODER} {checked.version}, {lowest}")
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
