"""`coldframe models`: what is built on this machine."""

import shutil
import sys
from pathlib import Path

import click

from coldframe.errors import BundleMissing
from coldframe.model.bundle import Manifest, load_manifest
from coldframe.model.exchange import CannotExchange, exchange
from coldframe.model.files import (
    built_models,
    model_folder,
    previous_folder,
    record_default,
    served_models,
)
from coldframe_local.commands import releases
from coldframe_local.commands.outputs import json_option, print_json
from coldframe_local.paths import check_built, model_dir


@click.command()
@click.option("--remove", "removed", multiple=True, metavar="NAME", help="Remove a model; may be repeated.")
@click.option("--yes", is_flag=True, help="Remove without a question.")
@click.option(
    "--restore", "restored", multiple=True, metavar="NAME", help="Exchange a model and the one before it."
)
@click.option(
    "--default",
    metavar="NAME",
    help="Model to record as the one that answers where none is named.  [default: none]",
)
@click.option(
    "--publish",
    metavar="PLACE",
    help="Check the models, and make them the current release of a folder or of s3://BUCKET/PREFIX."
    "  [default: none]",
)
@click.option(
    "--roll-back",
    metavar="PLACE",
    help="Make the release before the current one the current one.  [default: none]",
)
@click.option(
    "--to", metavar="DIGEST", help="Release for --roll-back, by its beginning.  [default: the one before]"
)
@click.option("--releases", "place", metavar="PLACE", help="List the releases of a place.  [default: none]")
@json_option
def models(
    removed: tuple[str, ...],
    yes: bool,
    restored: tuple[str, ...],
    default: str | None,
    publish: str | None,
    roll_back: str | None,
    to: str | None,
    place: str | None,
    as_json: bool,
) -> None:
    """List the models that are built, with their figures; remove, restore or publish some.

    Training keeps the model that had the name before. A second --restore undoes the first. Running servers
    take over the current release of their place, COLDFRAME_RELEASES; a second --roll-back undoes the first.
    """
    if to and not roll_back:
        raise click.UsageError("--to names a release for --roll-back. Add --roll-back PLACE.")
    if publish or roll_back or place:
        if sum(map(bool, (publish, roll_back, place, removed, restored, default))) > 1:
            raise click.UsageError("--publish, --roll-back and --releases stand alone. Run one at a time.")
        releases.manage(publish, roll_back, to, place, as_json)
        return
    folder = model_dir()
    if default in removed:
        raise click.UsageError(f"{default} cannot be removed and be the default. Name another --default.")
    check_built([*removed, *([default] if default else [])])
    if removed and not yes:
        _ask(removed)
    if default:
        record_default(folder, default)
        click.echo(f"{default} is the default model.")
    for name in removed:
        _remove(folder, name)
    for name in restored:
        _restore(folder, name)
        click.echo(f"{name} is the model before it again.")
        click.echo(describe(load_manifest(folder, name), name == _default(folder)))
    if not removed and not restored and not default:
        _list(folder, as_json)


def _list(folder: Path, as_json: bool) -> None:
    default = _default(folder)
    manifests = [load_manifest(folder, name) for name in built_models(folder)]
    if as_json:
        print_json([_facts(manifest, manifest.name == default) for manifest in manifests])
        return
    for manifest in manifests:
        click.echo(describe(manifest, manifest.name == default))


def _ask(names: tuple[str, ...]) -> None:
    listed = ", ".join(names)
    if not sys.stdin.isatty():
        raise click.ClickException(f"Nobody can be asked whether to remove {listed}. Add --yes to remove.")
    click.confirm(f"Remove {listed}, and what was there before? It cannot be undone.", abort=True)


def _remove(folder: Path, name: str) -> None:
    was_default = name == _default(folder)
    shutil.rmtree(model_folder(folder, name))
    shutil.rmtree(previous_folder(folder, name), ignore_errors=True)
    click.echo(f"{name} is removed.")
    if was_default and len(built_models(folder)) > 1:
        click.echo("It was the default model. Choose another: coldframe models --default NAME")


def _restore(folder: Path, name: str) -> None:
    previous, present = previous_folder(folder, name), model_folder(folder, name)
    if not previous.exists():
        raise BundleMissing(
            f"{folder} keeps no earlier model {name!r}. Train it again, or put a copy of yours at {present}."
        )
    if not present.exists():
        previous.rename(present)
        return
    try:
        exchange(previous, present)
    except CannotExchange:  # the disk has no such step, and two others leave the name alone for a moment
        aside = previous.with_name(f"{name}.aside")
        present.rename(aside)
        previous.rename(present)
        aside.rename(previous)


def _default(folder: Path) -> str:
    """The default model of a folder; empty where nothing says which."""
    try:
        return served_models(folder, "")[0]
    except BundleMissing:
        return ""


def _facts(manifest: Manifest, is_default: bool) -> dict[str, object]:
    return {
        "name": manifest.name,
        "version": manifest.version,
        "default": is_default,
        "encoder": manifest.encoder.name,
        "labels": manifest.labels,
        "heads": list(manifest.named_heads),
        "bytes": _bytes(manifest),
        "figures": manifest.figures,
    }


def _bytes(manifest: Manifest) -> int:
    return sum(entry.bytes for entry in manifest.files.values())


def describe(manifest: Manifest, is_default: bool) -> str:
    """A model in three lines."""
    size_mb = _bytes(manifest) / 1e6
    parts = f"{len(manifest.labels):,} labels, heads {', '.join(manifest.named_heads)}, {size_mb:.1f} MB"
    mark = "  (default)" if is_default else ""
    lines = [f"{manifest.name}  {manifest.version}{mark}", f"  {parts}, on {manifest.encoder.name}"]
    if figures := manifest.figures:
        low, high = figures.accuracy_interval
        reached = f"accuracy {figures.accuracy:.1%} (95% interval {low:.1%} to {high:.1%})"
        against = f"TF-IDF + logistic regression: {figures.baseline_accuracy:.1%}"
        lines.append(f"  {reached} on {figures.rows:,} held-out rows; {against}")
    return "\n".join(lines)
