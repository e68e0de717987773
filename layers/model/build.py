"""Weights to the model bundle: `coldframe build`."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from tqdm import tqdm

from coldframe.model.verify import verify_bundle
from layers.model.assemble import copy_classifier, write_manifest
from layers.model.make_encoder import make_encoder
from layers.model.paths import BUNDLE, CACHE, TRAINED
from layers.model.publish import whole_folder
from layers.model.weights import WeightsNotFound, find_weights

NAME = "topics"


def main(weights: Path) -> None:
    """Builds the bundle beside the old one, verifies it, and only then takes its place."""
    bar: tqdm[NoReturn] = tqdm(total=4, desc="build", unit="step")
    with whole_folder(BUNDLE) as folder, bar:
        with step(bar, "export and quantize the encoder (20 s)"):
            encoder = make_encoder(weights, folder, bar.set_postfix_str)
        with step(bar, "copy heads and estimator"):
            copy_classifier(TRAINED, folder)
        with step(bar, "write the manifest"):
            write_manifest(folder, NAME, TRAINED, encoder)
        with step(bar, "verify"):
            report = verify_bundle(folder)
    print(f"{BUNDLE}: {report.version}, lowest cosine to the golden vectors {report.lowest_cosine:.4f}")


@contextmanager
def step(bar: "tqdm[NoReturn]", text: str) -> Iterator[None]:
    """Names the step while it runs, and moves the progress bar on when it is done."""
    bar.set_postfix_str(text)
    yield
    bar.update()


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
