"""`coldframe serve`: the server that stays, on this machine."""

import os
import sys

import click
from msgspec.structs import replace

from coldframe_local.paths import check_served, model_dir


@click.command()
@click.option(
    "--host", help="Address to listen on; 0.0.0.0 for all.  [default: COLDFRAME_HOST, else 127.0.0.1]"
)
@click.option("--port", type=click.IntRange(0, 65535), help="0: a free one.  [default: PORT, else 8080]")
@click.option(
    "--model",
    "names",
    multiple=True,
    help="A model to serve; may be repeated. The first answers requests that name none.  [default: all that"
    " are built]",
)
@click.option(
    "--releases",
    metavar="PLACE",
    help="Folder, or s3://BUCKET/PREFIX, whose current release is served and exchanged while the server runs;"
    " `coldframe models --publish` writes it.  [default: COLDFRAME_RELEASES, else none]",
)
@click.option(
    "--allow-anyone",
    is_flag=True,
    help="Answer other machines without a token.  [default: COLDFRAME_ALLOW_ANYONE, else no]",
)
def serve(
    host: str | None, port: int | None, names: tuple[str, ...], releases: str | None, allow_anyone: bool
) -> None:
    """Serve the models over HTTP from one process that stays, as the container image does.

    Many requests at once, the same contract as the function's. Ctrl-C answers what was accepted, then ends; a
    second one ends at once. Another --host than this machine's needs tokens in COLDFRAME_TOKENS_FILE or
    COLDFRAME_TOKENS.
    """
    from coldframe.server.run import run
    from coldframe.server.settings import load_server_settings, read_port

    settings = load_server_settings(os.environ)
    settings = replace(
        settings,
        host=host or os.environ.get("COLDFRAME_HOST") or "127.0.0.1",
        model_dir=model_dir(),
        allow_anyone=allow_anyone or settings.allow_anyone,
        models=",".join(names) or settings.models,
        releases=releases or settings.releases,
    )
    if not settings.releases:
        check_served(settings.models)
    listening = read_port(os.environ) if port is None else port
    sys.exit(run(settings, listening, lambda url: click.echo(f"Coldframe is listening on {url}", err=True)))
