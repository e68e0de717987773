"""Commands that make models, in the build environment."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from coldframe.model.files import HEAD_NAMES, built_models
from coldframe_local.commands.outputs import json_option, require
from coldframe_local.paths import BUILD_PYTHON, EXAMPLE, IS_CHECKOUT, MODELS, ROOT, build_environ

_FILE = click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path)
_NEW_FILE = click.Path(dir_okay=False, resolve_path=True, path_type=Path)
_NEWSGROUPS = "20newsgroups"
_FOLDER = click.Path(file_okay=False, resolve_path=True, path_type=Path)


@click.command()
@click.option(
    "--train",
    is_flag=True,
    help="Then train the example again, on 20 Newsgroups (a quarter of an hour).",
)
@click.option(
    "--gpu",
    is_flag=True,
    help="Build the encoder for NVIDIA GPUs, too; the one for CPUs only if it is missing.",
)
@click.option(
    "--weights",
    type=click.Path(exists=True, path_type=Path),
    help="Folder with model.safetensors.  [default: fetched]",
)
def build(train: bool, gpu: bool, weights: Path | None) -> None:
    """Build the encoder and the example model: fetch, export, quantize, check."""
    arguments = ["--weights", str(weights)] if weights else []
    if not gpu or EXAMPLE not in built_models(MODELS):
        _run_in_build_environment("coldframe_training.build", *arguments)
    if gpu:
        _run_in_build_environment("coldframe_training.build_gpu", *arguments)
    if train:  # on the encoder that was just built
        _run_in_build_environment("coldframe_training.train_newsgroups")


def _run_in_build_environment(module: str, *arguments: str) -> None:
    """Runs a module where torch and scikit-learn are; when it fails, this process ends with its status."""
    if not IS_CHECKOUT:
        missing = (
            ("torch", "build") if module.startswith("coldframe_training.build") else ("sklearn", "train")
        )
        require(*missing)
    elif not BUILD_PYTHON.exists():
        raise click.ClickException(
            f"{BUILD_PYTHON} is missing: the build environment is not set up. Run `make build`."
        )
    finished = subprocess.run([BUILD_PYTHON, "-m", module, *arguments], cwd=ROOT, env=build_environ())
    if finished.returncode:
        sys.exit(finished.returncode)


@click.command()
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--text", metavar="COLUMN", help="Column of the texts.  [default: none; needed for a table]")
@click.option(
    "--label",
    metavar="COLUMN",
    help="Column of the labels, one for each text.  [default: none; needed for a table]",
)
@click.option(
    "--group",
    metavar="COLUMN",
    help="Column that groups related rows (a customer, a thread). A group is never split by the test."
    "  [default: no groups]",
)
@click.option(
    "--name", help="Name of the model, which is written to models/NAME.  [default: none; needed for a table]"
)
@click.option("--test", type=_FILE, help="Rows to test with.  [default: a share of TABLE]")
@click.option(
    "--test-share",
    default=0.2,
    show_default=True,
    type=click.FloatRange(0.01, 0.4),
    help="Share of TABLE that is held out to test with; a row's text or group decides.",
)
@click.option(
    "--seed",
    default=20,
    show_default=True,
    type=click.IntRange(0, 2**31 - 1),
    help="Seed of the heads' training.",
)
@click.option(
    "--heads",
    help=f"Heads to train, separated by commas.  [default: {','.join(HEAD_NAMES)}; mlp only with PyTorch]",
)
@click.option("--drop", is_flag=True, help="Leave out rows with faults instead of ending with their list.")
@click.option(
    "--faults",
    type=_NEW_FILE,
    help="CSV file to write all rows with faults to, without texts.  [default: none]",
)
@click.option("--fold-labels", is_flag=True, help="Make labels that differ by case alone one label.")
@click.option(
    "--separator", metavar="CHARACTER", help="Between the cells of CSV, or `tab`.  [default: what fits]"
)
@click.option(
    "--predictions",
    type=_NEW_FILE,
    help="CSV file to write the answers to the test rows to, without texts.  [default: none]",
)
@click.option(
    "--compare",
    metavar="OTHER",
    help="Model, by name or folder, that answers the same test rows.  [default: none]",
)
@click.option("--must-beat", is_flag=True, help="Write no model when it is worse than OTHER, or useless.")
@click.option(
    "--with-feedback",
    metavar="SOURCE",
    help="Further rows: a DynamoDB table with texts of feedback, or a file from `coldframe feedback texts`."
    "  [default: none]",
)
@click.option(
    "--feedback-keys",
    type=_FILE,
    help="File with the secret keys for the texts in a DynamoDB table.  [default: none]",
)
@click.option(
    "--feedback-models",
    metavar="NAMES",
    help="Further models whose feedback counts, separated by commas.  [default: NAME and OTHER]",
)
@click.option(
    "--encoder",
    metavar="NAME|FOLDER",
    help="A built encoder, or a folder of weights in the Hugging Face layout.  [default: all-MiniLM-L6-v2]",
)
@click.option(
    "--accuracy",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Have answers abstain, so that the others are right this often.  [default: none abstains]",
)
@click.option("--models", type=_FOLDER, help="The folder of models.  [default: models]")
@json_option
def train(
    table: Path,
    text: str | None,
    label: str | None,
    group: str | None,
    name: str | None,
    test: Path | None,
    test_share: float,
    seed: int,
    heads: str | None,
    drop: bool,
    faults: Path | None,
    fold_labels: bool,
    separator: str | None,
    predictions: Path | None,
    compare: str | None,
    must_beat: bool,
    with_feedback: str | None,
    feedback_keys: Path | None,
    feedback_models: str | None,
    accuracy: float | None,
    encoder: str | None,
    models: Path | None,
    as_json: bool,
) -> None:
    """Train a model on TABLE: CSV, TSV, JSON Lines or Parquet, with a column of texts and one of labels.

    TABLE 20newsgroups is 20 Newsgroups, downloaded or from COLDFRAME_DATA: the example, by its own settings.
    """
    if str(table) == _NEWSGROUPS and not table.exists():
        options = [f"--models={models}"] if models else []
        _run_in_build_environment("coldframe_training.train_newsgroups", *options, *["--json"] * as_json)
        return
    if not table.is_file():
        raise click.BadParameter(f"{table} is not a file.", param_hint="TABLE")
    required = {"--text": text, "--label": label, "--name": name}
    if missing := [f"'{option}'" for option, value in required.items() if value is None]:
        if text is None or label is None:
            _run_in_build_environment("coldframe_training.training_data.table", str(table.resolve()))
        raise click.UsageError(f"Missing option{'s' * (len(missing) > 1)} {', '.join(missing)}.")
    if separator is not None and separator != "tab" and len(separator) != 1:
        raise click.BadParameter(f"{separator!r} is not one character, nor `tab`.", param_hint="--separator")
    values = {
        "--text": text,
        "--label": label,
        "--group": group,
        "--name": name,
        "--test": test,
        "--test-share": test_share,
        "--seed": seed,
        "--heads": heads,
        "--faults": faults,
        "--separator": separator,
        "--predictions": predictions,
        "--compare": compare,
        "--feedback-models": feedback_models,
        "--accuracy": accuracy,
        "--encoder": str(Path(encoder).resolve()) if encoder and Path(encoder).is_dir() else encoder,
        "--models": models,
    }
    options = [f"{option}={value}" for option, value in values.items() if value is not None]
    flags = ["--drop"] * drop + ["--must-beat"] * must_beat + ["--fold-labels"] * fold_labels
    flags += ["--json"] * as_json
    with _feedback_file(with_feedback, feedback_keys) as rows:
        options += [f"--with-feedback={rows}"] if rows else []
        _run_in_build_environment(
            "coldframe_training.train_table", *options, *flags, "--", str(table.resolve())
        )


@contextmanager
def _feedback_file(source: str | None, keys: Path | None) -> Iterator[Path | None]:
    """A file with rows of feedback. Texts of a table are in clear for this user alone, then removed."""
    if source is None:
        yield None
    elif Path(source).is_file():
        yield Path(source).resolve()
    else:
        if keys is None:
            raise click.UsageError(
                f"{source} is not a file. Add --feedback-keys FILE to read the DynamoDB table {source}."
            )
        import msgspec

        from coldframe_local.commands.feedback import read_feedback

        rows = read_feedback(source, keys).rows
        with TemporaryDirectory() as folder:
            path = Path(folder, Path(source).name)
            path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
            yield path
