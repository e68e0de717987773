"""Commands that use a built model on this machine."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from coldframe.contract import MAX_TOP_K
from coldframe_local.commands.outputs import json_option, print_json, require
from coldframe_local.paths import check_served
from coldframe_local.paths import model_dir as _model_dir

if TYPE_CHECKING:
    from coldframe.config import Settings

_TEXTS_AT_ONCE = 256  # answers of a long list come while the rest of it is computed
_ANY_SIZE_BYTES = 1 << 30  # Lambda's limits are no reason to refuse a line here


@click.command()
@click.option(
    "--model-dir",
    type=click.Path(path_type=Path),
    default=None,
    help="Folder of encoders and models.  [default: models]",
)
@json_option
def verify(model_dir: Path | None, as_json: bool) -> None:
    """Check every model: its files, its heads, and the golden vectors of its encoder."""
    from coldframe.model.verify import verify_bundle

    encoders, models = verify_bundle(model_dir or _model_dir())
    if as_json:
        print_json({"encoders": encoders, "models": models})
        return
    for encoder in encoders:
        golden = f"{encoder.golden} golden vectors, lowest cosine {encoder.lowest_cosine:.4f}"
        click.echo(f"{encoder.name} {encoder.version}: {encoder.files} files as built, {golden}")
    for model in models:
        click.echo(f"{model.name} {model.version}: {model.files} files as built, on {model.encoder}")


@click.command()
@click.argument("texts", nargs=-1)
@click.option("--model", help="The model that answers.  [default: the default model]")
@click.option("--head", "heads", multiple=True, help="A head that answers; may be repeated.")
@click.option("--top-k", type=click.IntRange(1, MAX_TOP_K), help="Labels of each text.  [default: 1]")
@click.option(
    "--file",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Table whose rows are classified: CSV, TSV, JSON Lines or Parquet.  [default: none]",
)
@click.option(
    "--text", "column", metavar="COLUMN", help="Column of the texts.  [default: none; needed with --file]"
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Table to write, in any of the four formats.  [default: none; needed with --file]",
)
@click.option(
    "--prefix", default="", help="Prefix of the names of the answers' columns; needs --file.  [default: none]"
)
@click.option(
    "--processes",
    type=click.IntRange(1),
    help="Processes that classify the table; needs --file.  [default: one per core]",
)
def predict(
    texts: tuple[str, ...],
    model: str | None,
    heads: tuple[str, ...],
    top_k: int | None,
    path: Path | None,
    column: str | None,
    out: Path | None,
    prefix: str,
    processes: int | None,
) -> None:
    """Classify TEXTS, one text per line of standard input, or with --file a whole table, without a server.

    A table is answered by all cores. A run that was stopped resumes when it is started again.
    """
    from coldframe.config import load_settings

    settings = load_settings(os.environ)
    settings = replace(
        settings,
        model_dir=_model_dir(),
        models=model or settings.models,
        log_level="off",
        max_texts=_TEXTS_AT_ONCE,
        max_body_bytes=_ANY_SIZE_BYTES,
        max_answer_bytes=_ANY_SIZE_BYTES,
    )
    check_served(settings.models)
    if path is None:
        for option, value in {
            "--text": column,
            "--out": out,
            "--prefix": prefix,
            "--processes": processes,
        }.items():
            if value:
                raise click.UsageError(f"{option} is for tables: name one with --file.")
        _predict_texts(texts, heads, top_k or 1, settings)
        return
    if texts or top_k:
        raise click.UsageError("With --file, give neither TEXTS nor --top-k.")
    if column is None or out is None:
        raise click.UsageError(f"Missing option '{'--out' if column else '--text'}', which --file needs.")
    require("pyarrow", "files")
    from coldframe_local.batch.predict_file.predict_file import predict_file

    done = predict_file(path, column, out, settings, heads, prefix, processes)
    note = f", {done.reused_rows:,} of them answered by an earlier run" if done.reused_rows else ""
    click.echo(f"{out}: {done.rows:,} rows{note}")


def _predict_texts(texts: tuple[str, ...], heads: tuple[str, ...], top_k: int, settings: "Settings") -> None:
    """Prints one line of JSON for each text."""
    from coldframe.api.api import Api, Request
    from coldframe.pipeline.models import load_models
    from coldframe.progress import Progress
    from coldframe.timing import StartMark

    lines = list(texts) or _lines()
    api = Api(load_models(settings), settings, StartMark())
    options: dict[str, object] = {"top_k": top_k} | ({"heads": list(heads)} if heads else {})
    starts = range(0, len(lines), _TEXTS_AT_ONCE)
    # Answers on a terminal are progress enough; a bar would stand between them.
    for start in Progress(starts, desc="classifying", unit="batch", leave=False, disable=sys.stdout.isatty()):
        body = json.dumps({**options, "texts": lines[start : start + _TEXTS_AT_ONCE]}).encode()
        reply = api.answer(Request("POST", "/v1/predict", body=body))
        answer = json.loads(reply.body)
        if reply.status != 200:
            raise click.ClickException(answer["detail"])
        for prediction in answer["predictions"]:
            click.echo(json.dumps(prediction["heads"]))


def _lines() -> list[str]:
    if sys.stdin.isatty():
        click.echo("Waiting for texts, one per line. Ctrl-D ends them.", err=True)
    lines = [line.rstrip("\n") for line in sys.stdin]
    if not lines:
        raise click.ClickException(
            "There is no text. Give texts as arguments, or one per line of standard input."
        )
    return lines


@click.command("fill-cache")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--head", "heads", multiple=True, help="A head whose predictions are stored; default: all.")
@json_option
def fill_cache(file: Path, heads: tuple[str, ...], as_json: bool) -> None:
    """Fill the shared cache from FILE: one JSON object with "text", or one string, per line."""
    from coldframe_local.emulator.stores.fill_cache import fill

    counts = fill(file, _model_dir(), heads)
    if as_json:
        print_json(counts)
    else:
        click.echo(str(counts))
