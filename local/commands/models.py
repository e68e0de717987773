"""`coldframe models`: what is built on this machine."""

import shutil

import click

from coldframe.model.bundle import Manifest, load_manifest
from coldframe.model.files import built_models, model_folder
from local.paths import check_built, model_dir


@click.command()
@click.option("--remove", "removed", multiple=True, metavar="NAME", help="Remove a model; may be repeated.")
def models(removed: tuple[str, ...]) -> None:
    """List the models that are built, with their figures, or remove some."""
    folder = model_dir()
    check_built(removed)
    for name in removed:
        shutil.rmtree(model_folder(folder, name))
        click.echo(f"{name} is removed.")
    if not removed:
        for name in built_models(folder):
            click.echo(describe(load_manifest(folder, name)))


def describe(manifest: Manifest) -> str:
    """A model in three lines."""
    size_mb = sum(entry.bytes for entry in manifest.files.values()) / 1e6
    parts = f"{len(manifest.labels):,} labels, heads {', '.join(manifest.heads)}, {size_mb:.1f} MB"
    lines = [f"{manifest.name}  {manifest.version}", f"  {parts}, on {manifest.encoder.name}"]
    if figures := manifest.figures:
        low, high = figures.accuracy_interval
        reached = f"accuracy {figures.accuracy:.1%} (95% interval {low:.1%} to {high:.1%})"
        against = f"TF-IDF + logistic regression: {figures.baseline_accuracy:.1%}"
        lines.append(f"  {reached} on {figures.rows:,} held-out rows; {against}")
    return "\n".join(lines)
