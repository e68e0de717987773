"""Commands that use a built model on this machine."""

import json
import os
import sys
from pathlib import Path

import click
from msgspec.structs import replace

from coldframe.api.contract import MAX_TOP_K
from local.paths import check_built
from local.paths import model_dir as _model_dir
from local.paths import models as _models

_TEXTS_AT_ONCE = 256  # answers of a long list come while the rest of it is computed
_ANY_SIZE_BYTES = 1 << 30  # Lambda's limits are no reason to refuse a line here


@click.command()
@click.option(
    "--model-dir", type=click.Path(path_type=Path), default=None, help="The folder of encoders and models."
)
def verify(model_dir: Path | None) -> None:
    """Check every model: its files, its heads, and the golden vectors of its encoder."""
    from coldframe.model.verify import verify_bundle

    encoders, models = verify_bundle(model_dir or _model_dir())
    for encoder in encoders:
        golden = f"{encoder.golden} golden vectors, lowest cosine {encoder.lowest_cosine:.4f}"
        click.echo(f"{encoder.name} {encoder.version}: {encoder.files} files as built, {golden}")
    for model in models:
        click.echo(f"{model.name} {model.version}: {model.files} files as built, on {model.encoder}")


@click.command()
@click.argument("texts", nargs=-1)
@click.option("--model", help="The model that answers.  [default: the example]")
@click.option("--head", "heads", multiple=True, help="A head that answers; may be repeated.")
@click.option("--top-k", default=1, show_default=True, type=click.IntRange(1, MAX_TOP_K))
def predict(texts: tuple[str, ...], model: str | None, heads: tuple[str, ...], top_k: int) -> None:
    """Classify TEXTS, or one text per line of standard input, without a server."""
    from coldframe.api.api import Api, Request
    from coldframe.config import load_settings
    from coldframe.pipeline.models import load_models
    from coldframe.timing import StartMark

    settings = replace(
        load_settings(os.environ),
        model_dir=_model_dir(),
        models=model or _models(),
        log_level="off",
        max_texts=_TEXTS_AT_ONCE,
        max_body_bytes=_ANY_SIZE_BYTES,
        max_answer_bytes=_ANY_SIZE_BYTES,
    )
    check_built([model] if model else [])
    api = Api(load_models(settings), settings, StartMark())
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
