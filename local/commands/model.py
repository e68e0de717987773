"""Commands that use a built model on this machine."""

import json
import os
import sys
from pathlib import Path

import click
from msgspec.structs import replace

from coldframe.api.contract import MAX_TOP_K
from local.paths import model_dir as _model_dir

_TEXTS_AT_ONCE = 256  # answers of a long list come while the rest of it is computed
_ANY_SIZE_BYTES = 1 << 30  # Lambda's limits are no reason to refuse a line here


@click.command()
@click.option("--model-dir", type=click.Path(path_type=Path), default=None, help="The bundle to check.")
def verify(model_dir: Path | None) -> None:
    """Check every file of the bundle and every golden vector."""
    from coldframe.model.verify import verify_bundle

    report = verify_bundle(model_dir or _model_dir())
    click.echo(f"{report.version}: {report.files} files as built, {report.golden} golden vectors,", nl=False)
    click.echo(f" lowest cosine {report.lowest_cosine:.4f}")


@click.command()
@click.argument("texts", nargs=-1)
@click.option("--head", "heads", multiple=True, help="A head that answers; may be repeated.")
@click.option("--top-k", default=1, show_default=True, type=click.IntRange(1, MAX_TOP_K))
def predict(texts: tuple[str, ...], heads: tuple[str, ...], top_k: int) -> None:
    """Classify TEXTS, or one text per line of standard input, without a server."""
    from coldframe.api.api import Api, Request
    from coldframe.config import load_settings
    from coldframe.pipeline.predictor import load_predictor
    from coldframe.timing import StartMark

    settings = replace(
        load_settings(os.environ),
        model_dir=_model_dir(),
        log_level="off",
        max_texts=_TEXTS_AT_ONCE,
        max_body_bytes=_ANY_SIZE_BYTES,
        max_answer_bytes=_ANY_SIZE_BYTES,
    )
    api = Api(load_predictor(settings), settings, StartMark())
    lines = list(texts) or [line.rstrip("\n") for line in sys.stdin]
    asked: dict[str, object] = {"top_k": top_k} | ({"heads": list(heads)} if heads else {})
    for start in range(0, max(1, len(lines)), _TEXTS_AT_ONCE):
        body = json.dumps({**asked, "texts": lines[start : start + _TEXTS_AT_ONCE]}).encode()
        reply = api.answer(Request("POST", "/v1/predict", body=body))
        answer = json.loads(reply.body)
        if reply.status != 200:
            raise click.ClickException(answer["detail"])
        for prediction in answer["predictions"]:
            click.echo(json.dumps(prediction["heads"]))


@click.command("fill-cache")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--head", "heads", multiple=True, help="A head whose predictions are stored; default: all.")
def fill_cache(file: Path, heads: tuple[str, ...]) -> None:
    """Fill the shared cache from FILE: one JSON object with "text", or one string, per line."""
    from local.stores.fill_cache import fill

    click.echo(str(fill(file, _model_dir(), heads)))
