"""The example: a model of 20 Newsgroups by committed settings, `coldframe train 20newsgroups`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from coldframe.errors import BundleError
from layers.model.encoders import encoder_for
from layers.model.evaluate import NotBetter
from layers.model.make_model import ModelFolder, make_model
from layers.model.newsgroups import load_example
from layers.model.paths import EXAMPLE, MODELS, TRAINED
from layers.model.prove import AnswersDiffer
from layers.model.publish import whole_folder
from layers.model.report import EvaluationFault, write_figures
from layers.model.train_heads import HeadDiffers


def main(arguments: Sequence[str]) -> None:
    """Trains, and writes both the parts that are committed and the model."""
    parser = argparse.ArgumentParser(prog="coldframe train 20newsgroups")
    parser.add_argument("--trained", type=Path, default=TRAINED, help="folder of the parts to commit")
    parser.add_argument("--models", type=Path, default=MODELS)
    given = parser.parse_args(arguments)
    try:
        encoder = encoder_for(None, given.models)
        example = load_example()
        with whole_folder(given.trained) as trained:
            place = ModelFolder(EXAMPLE, trained, given.models)
            report = make_model(
                example.task, example.numbers, place, encoder, example.parameters, example.seed
            )
            write_figures(report, trained)
    except (AnswersDiffer, BundleError, EvaluationFault, HeadDiffers, NotBetter) as exc:
        sys.exit(f"Error: {exc}")
    print(report.line)
    print(f"{given.models / EXAMPLE}: {report.version}")


if __name__ == "__main__":
    main(sys.argv[1:])
