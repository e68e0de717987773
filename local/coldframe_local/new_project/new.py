"""`coldframe new`: a project of one's own."""

from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--wheel",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Wheel of this release for the project.  [default: the one that Coldframe was installed from]",
)
@click.option(
    "--encoder",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Packed encoder to install into the project.  [default: none]",
)
def new(folder: Path, wheel: Path | None, encoder: Path | None) -> None:
    """Write a project into FOLDER, whose last part is its name: template, function, table and tests.

    The project is yours: it imports Coldframe, and holds no copy of it. FOLDER must be empty or missing.
    """
    from coldframe_local.new_project.project import WHEEL, installed_wheel, write_project

    if wheel is not None and wheel.name != WHEEL:
        raise click.UsageError(f"{wheel.name} is not the wheel of this release. Expected {WHEEL}: name it.")
    wheel = wheel or installed_wheel()
    files = write_project(folder.resolve(), wheel, encoder)
    click.echo(f"{folder}: {files} files")
    if wheel is None:
        click.echo(f"Copy {WHEEL} into {folder / 'wheels'} before you run make.")
    hint = "" if encoder else " ENCODER=FILE"
    click.echo(f"Next: cd {folder} && make run{hint}")
