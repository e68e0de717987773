"""`coldframe models`: what is built on this machine."""

import shutil
from pathlib import Path

import click

from coldframe.errors import BundleMissing
from coldframe.model.bundle import Manifest, load_manifest
from coldframe.model.files import built_models, model_folder, record_default, served_models
from local.paths import check_built, model_dir


@click.command()
@click.option("--remove", "removed", multiple=True, metavar="NAME", help="Remove a model; may be repeated.")
@click.option("--default", metavar="NAME", help="Record the model that answers where no model is named.")
def models(removed: tuple[str, ...], default: str | None) -> None:
    """List the models that are built, with their figures; remove some, or record the default one."""
    folder = model_dir()
    if default in removed:
        raise click.UsageError(f"{default} cannot be removed and be the default. Name another --default.")
    check_built([*removed, *([default] if default else [])])
    if default:
        record_default(folder, default)
        click.echo(f"{default} is the default model.")
    for name in removed:
        _remove(folder, name)
    if not removed and not default:
        for name in built_models(folder):
            click.echo(describe(load_manifest(folder, name), name == _default(folder)))


def _remove(folder: Path, name: str) -> None:
    was_default = name == _default(folder)
    shutil.rmtree(model_folder(folder, name))
    click.echo(f"{name} is removed.")
    if was_default and len(built_models(folder)) > 1:
        click.echo("It was the default model. Choose another: coldframe models --default NAME")


def _default(folder: Path) -> str:
    """The default model of a folder; empty where nothing says which."""
    try:
        return served_models(folder, "")[0]
    except BundleMissing:
        return ""


def describe(manifest: Manifest, is_default: bool) -> str:
    """A model in three lines."""
    size_mb = sum(entry.bytes for entry in manifest.files.values()) / 1e6
    parts = f"{len(manifest.labels):,} labels, heads {', '.join(manifest.heads)}, {size_mb:.1f} MB"
    mark = "  (default)" if is_default else ""
    lines = [f"{manifest.name}  {manifest.version}{mark}", f"  {parts}, on {manifest.encoder.name}"]
    if figures := manifest.figures:
        low, high = figures.accuracy_interval
        reached = f"accuracy {figures.accuracy:.1%} (95% interval {low:.1%} to {high:.1%})"
        against = f"TF-IDF + logistic regression: {figures.baseline_accuracy:.1%}"
        lines.append(f"  {reached} on {figures.rows:,} held-out rows; {against}")
    return "\n".join(lines)
