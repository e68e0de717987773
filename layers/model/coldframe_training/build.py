"""Weights to the model bundle: `coldframe build`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import msgspec

from coldframe.model.files import encoder_folder, model_folder
from coldframe.model.verify import load_whole_encoder, verify_encoder
from coldframe.progress import Progress
from coldframe_training.encoder_build.make_encoder import make_encoder
from coldframe_training.encoder_build.weights import weights_argument
from coldframe_training.files.paths import DEFAULT_ENCODER, EXAMPLE, MODELS, TRAINED
from coldframe_training.publishing.assemble import assemble, publish_reference, write_encoder_manifest
from coldframe_training.publishing.publish import whole_encoder, whole_model
from coldframe_training.report import REPORT_JSON, read_figures, write_report


def main(weights: Path) -> None:
    """Builds encoder and example beside the old ones, verifies them, and only then takes their places."""
    bar: Progress[NoReturn] = Progress(total=3, desc="build", unit="step")
    with bar:
        with whole_encoder(MODELS, DEFAULT_ENCODER) as stage:
            folder = encoder_folder(stage, DEFAULT_ENCODER)
            with step(bar, "export and quantize the encoder (20 s)"):
                part = make_encoder(weights, folder, bar.set_postfix_str)
                write_encoder_manifest(folder, DEFAULT_ENCODER, part)
            with step(bar, "verify the encoder"):
                checked = verify_encoder(load_whole_encoder(stage, DEFAULT_ENCODER))
        with step(bar, "heads of the example"), whole_model(MODELS, EXAMPLE) as stage:
            model = assemble(stage, EXAMPLE, TRAINED, load_whole_encoder(MODELS, DEFAULT_ENCODER))
            publish_reference(TRAINED, model_folder(stage, EXAMPLE), model.version)
            if (TRAINED / REPORT_JSON).exists():
                report = msgspec.structs.replace(read_figures(TRAINED), version=model.version)
                write_report(report, model_folder(stage, EXAMPLE))
    lowest = f"lowest cosine to the golden vectors {checked.lowest_cosine:.4f}"
    print(f"{DEFAULT_ENCODER} {checked.version}, {lowest}")
    print(f"{EXAMPLE} {model.version}, in {MODELS}")


@contextmanager
def step(bar: "Progress[NoReturn]", text: str) -> Iterator[None]:
    """Names the step while it runs, and moves the progress bar on when it is done."""
    bar.set_postfix_str(text)
    yield
    bar.update()


if __name__ == "__main__":
    main(weights_argument(sys.argv[1:]))
