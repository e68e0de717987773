"""A table of texts and labels to a model that can be served: `coldframe train`."""

import argparse
import hashlib
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import msgspec

from coldframe.errors import ColdframeError
from coldframe.experiments.document import Arm, Experiment
from coldframe.model.files import (
    AUTO,
    DEFAULT,
    ENCODERS,
    ENSEMBLE,
    HEAD_NAMES,
    MANIFEST,
    encoder_folder,
    model_folder,
)
from coldframe_training.embeddings.embed import ServedEncoder
from coldframe_training.encoder_build.encoders import encoder_for
from coldframe_training.files.errors import EncoderRefused
from coldframe_training.files.paths import EXAMPLE, MODELS, ROOT
from coldframe_training.publishing.publish import default_line
from coldframe_training.report import EvaluationFault
from coldframe_training.thresholds.abstaining import OutOfReach
from coldframe_training.training.check_served import AnswersDiffer
from coldframe_training.training.evaluate import NotBetter
from coldframe_training.training.head_trainers import scale_parameters
from coldframe_training.training.make_model import ModelFolder, make_model
from coldframe_training.training.train_heads import HeadDiffers
from coldframe_training.training.trained_on import NotComparable, count_missing, opponent_of
from coldframe_training.training.training_result import (
    TrainingResult,
    count_task_rows,
    lines_aside,
    print_result,
    training_result,
)
from coldframe_training.training_data.checks import Checked, Finding, check_table, spellings_of, write_faults
from coldframe_training.training_data.feedback import Feedback, read_feedback, usable_feedback
from coldframe_training.training_data.samples import Task
from coldframe_training.training_data.table import Columns, Table, TableFault, read_table
from coldframe_training.training_data.table_task import task_of

REPORT_SHADOW = "report.shadow.json"
"""Name of the file with an experiment, beside a model and outside its version."""
_SHADOW = "retrained"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_OF_HEADS = tuple(f"-{head}" for head in (AUTO, *HEAD_NAMES, ENSEMBLE))  # other models' heads are listed so

_FAULTS = (
    TableFault,
    AnswersDiffer,
    HeadDiffers,
    EvaluationFault,
    NotBetter,
    NotComparable,
    OutOfReach,
    EncoderRefused,
    ColdframeError,
)


def main(arguments: Sequence[str]) -> None:
    """Trains, and writes the model; whatever is wrong ends the program with one message."""
    options = parse(arguments)
    if options.must_beat and not options.compare:
        sys.exit("Error: --must-beat needs --compare OTHER: the model that must not be better.")
    try:
        with lines_aside(options.as_json):
            check_name(options.name, options.models)
            result = train_table(options)
            print(f"{result.folder}: {result.version}")
            print(default_line(options.models, options.name))
            if options.with_feedback:
                print(prepare_shadow(options.models, options.name, options.compare))
            print(f"Open {result.report}")
    except _FAULTS as exc:
        sys.exit(f"Error: {exc}")
    if options.as_json:
        print_result(result)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of `coldframe train`."""
    parser = argparse.ArgumentParser(prog="coldframe train")
    parser.add_argument("table", type=Path)
    parser.add_argument("--text", required=True)
    parser.add_argument("--label", required=True)
    parser.add_argument("--separator")
    parser.add_argument("--fold-labels", action="store_true")
    parser.add_argument("--faults", type=Path)
    parser.add_argument("--predictions", type=Path)
    parser.add_argument("--group")
    parser.add_argument("--name", required=True)
    parser.add_argument("--test", type=Path)
    parser.add_argument("--test-share", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--heads", default=",".join(default_heads()))
    parser.add_argument("--drop", action="store_true")
    parser.add_argument("--compare", metavar="OTHER")
    parser.add_argument("--must-beat", action="store_true")
    parser.add_argument("--with-feedback", type=Path)
    parser.add_argument("--feedback-models", default="")
    parser.add_argument("--accuracy", type=float)
    parser.add_argument("--encoder")
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--json", dest="as_json", action="store_true")
    return parser.parse_args(arguments)


def check_name(name: str, models: Path) -> None:
    """Raises TableFault when no model may be written under this name."""
    if not _NAME.fullmatch(name):
        expected = "lower-case letters, digits, '.', '_' and '-', at most 64, with a letter or digit first"
        raise TableFault(f"The name {name!r} cannot be used. Expected {expected}.")
    if name in (ENCODERS, DEFAULT) or encoder_folder(models, name).exists() or name.endswith(_OF_HEADS):
        endings = ", ".join(f"…{ending}" for ending in _OF_HEADS)
        raise TableFault(
            f"The name {name!r} is taken: {ENCODERS}, {DEFAULT}, names of encoders, and {endings} are."
        )
    folder = model_folder(models, name).resolve()
    if name == EXAMPLE and folder.is_relative_to(MODELS):
        raise TableFault(f"{name!r} is the example, made of committed files. Take another --name.")
    if folder.is_relative_to(ROOT) and not folder.is_relative_to(MODELS):
        raise TableFault(f"{folder} is a folder of the repository. Expected one in {MODELS}, or elsewhere.")
    if folder.exists() and not (folder / MANIFEST).exists():
        raise TableFault(f"{folder} exists and is not a model. Choose another --name, or remove it.")


def train_table(options: argparse.Namespace) -> TrainingResult:
    """Reads, checks, trains, verifies; only then there is a model of this name."""
    started_s = time.monotonic()
    encoder = encoder_for(options.encoder, options.models)
    other = other_model(options.compare, options.models)
    columns = Columns(options.text, options.label, options.group)
    if options.faults:
        options.faults.unlink(missing_ok=True)
    table = read_columns(options.table, columns, options.separator)
    spellings = spellings_of(table.labels) if options.fold_labels else None
    checked = check(options.table, table, options, spellings)
    test = None
    if options.test:
        rows = read_columns(options.test, columns, options.separator)
        test = check(options.test, rows, options, spellings, is_test=True)
    tables = [checked, test] if test else [checked]
    feedback = feedback_of(options, [one.table for one in tables], spellings)
    task, notes, numbers = task_of(feedback.join(checked), test, options.test_share, feedback.complaints)
    for note in notes:
        print(note)
    if options.with_feedback:
        print(feedback.line)
        warn_of_missing(task, other)
    for note in checked.notes:
        print(f"Warning: {note}")
    print(
        f"{len(task.labels):,} labels; {len(task.fit):,} rows to train on, {len(task.validation):,} to make"
        f" choices with, {len(task.test.target):,} to test with"
    )
    opponent = opponent_of(other, task.test, options.test is not None) if other else None
    parameters = scale_parameters(len(task.train.target), len(task.labels), options.seed)
    head_parameters = {name: parameters[name] for name in heads_of(options.heads)}
    with tempfile.TemporaryDirectory() as scratch:
        place = ModelFolder(options.name, Path(scratch), options.models)
        report = make_model(
            task,
            numbers,
            place,
            encoder,
            head_parameters,
            options.seed,
            opponent,
            options.must_beat,
            options.accuracy,
            provenance_of(options, checked, encoder) | feedback.provenance,
            options.predictions,
        )
    print(report.line)
    for warning in report.warnings:
        print(f"Warning: {warning}")
    if report.comparison:
        print(report.comparison.line)
    read = sum(one.read for one in tables) + feedback.read
    used = sum(len(one.numbers) for one in tables) + feedback.used
    counts = count_task_rows(task, read, read - used)
    return training_result(report, options.models, counts, checked.notes, time.monotonic() - started_s)


def feedback_of(
    options: argparse.Namespace, tables: Sequence[Table], spellings: Mapping[str, str] | None
) -> Feedback:
    """The feedback that can be used beside the tables; says and lists what cannot. Raises TableFault."""
    if not options.with_feedback:
        return usable_feedback([], tables, frozenset())
    names = {options.name, options.compare, *options.feedback_models.split(",")}
    rows = read_feedback(options.with_feedback)
    feedback = usable_feedback(rows, tables, frozenset(name for name in names if name), spellings)
    for finding in feedback.left_out:
        print(f"left out of the feedback: {finding}")
    if options.faults:
        write_faults(options.faults, options.with_feedback.name, feedback.left_out)
    return feedback


def warn_of_missing(task: Task, other: Path | None) -> None:
    """Warns where the model to compare with was trained on texts that are gone."""
    texts = chain(*task.train.forms.values(), *task.test.forms.values())
    if other and (missing := count_missing(texts, other)):
        print(
            f"Warning: {other.name} was trained on {missing:,} texts that are missing here. Use the table"
            " of its training, unless they are feedback that has expired."
        )


def prepare_shadow(models: Path, name: str, other: str | None) -> str:
    """Writes an experiment with the new model as a shadow; returns the line that says how to start it."""
    if other is None or Path(other).name == name:
        return "To prepare a shadow, compare with the model before it, and give the new one its own --name."
    shadow = Experiment(name=_SHADOW, kind="shadow", arms=[Arm("now"), Arm("next", name)])
    path = model_folder(models, name) / REPORT_SHADOW
    path.write_bytes(msgspec.json.encode(shadow))
    return f"Serve both models, then watch {name} as a shadow: coldframe experiment start {path}"


def other_model(name: str | None, models: Path) -> Path | None:
    """The folder of the model to compare with: a name, or a path. Raises TableFault."""
    if name is None:
        return None
    for folder in (model_folder(models, name), Path(name)):
        if (folder / MANIFEST).exists():
            return folder.resolve()
    raise TableFault(f"--compare {name}: neither {model_folder(models, name)} nor {name} is a model.")


def read_columns(path: Path, columns: Columns, separator: str | None) -> Table:
    """The columns of a table. Raises TableFault."""
    try:
        return read_table(path, columns, separator and separator.replace("tab", "\t"))
    except OSError as exc:
        raise TableFault(f"{path} cannot be read: {exc.strerror}. Name another file.") from exc


def check(
    path: Path,
    table: Table,
    options: argparse.Namespace,
    spellings: Mapping[str, str] | None,
    is_test: bool = False,
) -> Checked:
    """Check a table; `--faults` lists its faults. Raises TableFault."""

    def report(findings: Sequence[Finding]) -> None:
        if options.faults:
            write_faults(options.faults, path.name, findings)

    return check_table(table, options.drop, is_test, spellings, report)


def provenance_of(options: argparse.Namespace, checked: Checked, encoder: ServedEncoder) -> dict[str, str]:
    """Where a model comes from, for its report; the model's version says nothing of it."""
    with options.table.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "table": options.table.name,
        "sha256 of the table": digest,
        "rows read": f"{checked.read:,}",
        "rows left out": f"{checked.read - len(checked.numbers):,}",
        "row numbers": "count records from 1, without the header; a text with line ends is one record",
        "encoder": f"{encoder.manifest.name} {encoder.manifest.version}",
        "command": command_of(options),
    }


def command_of(options: argparse.Namespace) -> str:
    """The command as a user may type it again, with the names of files only."""
    words = ["coldframe", "train", options.table.name]
    for name, value in vars(parse(["--text=", "--label=", "--name=", ""])).items():
        argument = getattr(options, name)
        if name in ("table", "models", "as_json") or argument == value:
            continue
        option = f"--{name.replace('_', '-')}"
        words += [option] if argument is True else [option, getattr(argument, "name", str(argument))]
    return shlex.join(words)


def default_heads() -> list[str]:
    """Heads that can be trained here: `mlp` needs PyTorch."""
    return [name for name in HEAD_NAMES if name != "mlp" or find_spec("torch")]


def heads_of(names: str) -> list[str]:
    """Heads by name, in our order. Raises TableFault for one that is unknown."""
    requested_heads = [name.strip() for name in names.split(",")]
    if unknown := [name for name in requested_heads if name not in HEAD_NAMES]:
        raise TableFault(f"{unknown[0]!r} is not a head. Heads: {', '.join(HEAD_NAMES)}.")
    return [name for name in HEAD_NAMES if name in requested_heads]


if __name__ == "__main__":
    main(sys.argv[1:])
