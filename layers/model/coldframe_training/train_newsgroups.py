"""The example: a model of 20 Newsgroups by committed settings, `coldframe train 20newsgroups`."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from coldframe.errors import BundleError
from coldframe_training.encoder_build.encoders import encoder_for
from coldframe_training.files.paths import EXAMPLE, MODELS, TRAINED
from coldframe_training.publishing.publish import whole_folder
from coldframe_training.report import EvaluationFault, write_figures
from coldframe_training.training.check_served import AnswersDiffer
from coldframe_training.training.evaluate import NotBetter
from coldframe_training.training.make_model import ModelFolder, make_model
from coldframe_training.training.newsgroups import load_example
from coldframe_training.training.train_heads import HeadDiffers
from coldframe_training.training.training_result import (
    TrainingResult,
    count_task_rows,
    lines_aside,
    print_result,
    training_result,
)


def main(arguments: Sequence[str]) -> None:
    """Trains, and writes both the parts that are committed and the model."""
    parser = argparse.ArgumentParser(prog="coldframe train 20newsgroups")
    parser.add_argument("--trained", type=Path, default=TRAINED, help="folder of the parts to commit")
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--json", dest="as_json", action="store_true")
    options = parser.parse_args(arguments)
    try:
        with lines_aside(options.as_json):
            result = train_example(options.trained, options.models)
            print(f"{result.folder}: {result.version}")
    except (AnswersDiffer, BundleError, EvaluationFault, HeadDiffers, NotBetter) as exc:
        sys.exit(f"Error: {exc}")
    if options.as_json:
        print_result(result)


def train_example(folder: Path, models: Path) -> TrainingResult:
    """Writes the parts of the example to `folder`, and the model to `models`."""
    started_s = time.monotonic()
    encoder = encoder_for(None, models)
    example = load_example()
    with whole_folder(folder) as trained:
        place = ModelFolder(EXAMPLE, trained, models)
        report = make_model(example.task, example.numbers, place, encoder, example.parameters, example.seed)
        write_figures(report, trained)
    print(report.line)
    task = example.task
    rows = count_task_rows(task, read=len(task.train.target) + len(task.test.target), dropped=0)
    return training_result(report, models, rows, [], time.monotonic() - started_s)


if __name__ == "__main__":
    main(sys.argv[1:])
