"""Releases of models in a place, for `coldframe models`."""

import click

from coldframe.model.files import served_models
from coldframe.model.verify import verify_bundle
from coldframe.releases import publishing
from coldframe.releases.place import Place, Pointer, open_place
from coldframe.releases.release import Release, read_release
from coldframe_local.commands.outputs import print_json
from coldframe_local.paths import check_served, model_dir, models

_SHOWN = 12


def manage(
    publish: str | None, roll_back: str | None, to: str | None, place: str | None, as_json: bool
) -> None:
    """Does what one of the options asks. Raises a BundleError."""
    if publish:
        publish_models(publish)
    elif roll_back:
        roll_models_back(roll_back, to or "")
    elif place:
        list_releases(place, as_json)


def publish_models(address: str) -> None:
    """Checks every model, as servers will, and publishes the ones to serve. Raises a BundleError."""
    folder = model_dir()
    check_served(models())
    verify_bundle(folder)
    release = publishing.describe_release(folder, served_models(folder, models()))
    place = open_place(address)
    pointer = publishing.publish(place, folder, release)
    click.echo(_line(pointer.release, release, "  (current)"))
    _say_next(place, pointer)


def roll_models_back(address: str, to: str) -> None:
    """Moves the pointer to an earlier release. Raises a BundleError."""
    place = open_place(address)
    pointer = publishing.roll_back(place, to)
    click.echo(_line(pointer.release, read_release(place, pointer.release), "  (current)"))
    _say_next(place, pointer)


def list_releases(address: str, as_json: bool) -> None:
    """Prints the releases of a place, the current one and the one before it marked. Raises a BundleError."""
    place = open_place(address)
    pointer = place.mark().pointer()
    marks = {pointer.previous: "previous", pointer.release: "current"} if pointer else {}
    facts = [(name, release, marks.get(name, "")) for name, release in publishing.releases(place)]
    if as_json:
        print_json(
            [{"release": name, "models": one.models, "mark": mark or None} for name, one, mark in facts]
        )
        return
    for name, release, mark in facts:
        click.echo(_line(name, release, f"  ({mark})" if mark else ""))
    if not facts:
        click.echo(f"{place.address} has no release. Publish one: coldframe models --publish {place.address}")


def _say_next(place: Place, pointer: Pointer) -> None:
    click.echo("Servers with this place take it over at their next look, or at once after SIGHUP.")
    if pointer.previous:
        click.echo(f"To go back to {pointer.previous[:_SHOWN]}: coldframe models --roll-back {place.address}")


def _line(name: str, release: Release, mark: str) -> str:
    size_mb = sum(entry.bytes for entry in release.files.values()) / 1e6
    versions = ", ".join(f"{model} {version[:19]}" for model, version in release.models.items())
    return f"{name[:_SHOWN]}  {versions}, {size_mb:.1f} MB{mark}"
