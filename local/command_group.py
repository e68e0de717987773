"""The group of commands behind `coldframe`: its own, and commands of other packages."""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import click

from coldframe.errors import ColdframeError

PLUGINS = "coldframe.commands"
"""Entry points by which a package adds a command, as `bench` does in pyproject.toml."""


PROGRAM = "program"
"""The context's object where this process runs one command, and not a test runner or another program."""


class CommandGroup(click.Group):
    """Imports a command of another package when that command is called; shows our errors as one line.

    This package never names packages that build on it: it finds them by their entry points.
    """

    def __call__(self, *args: Any, **options: Any) -> Any:
        """The way in of a console script. Test runners and other programs call `main`."""
        return self.main(*args, obj=PROGRAM, **options)

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*super().list_commands(context), *_plugins()})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        own = super().get_command(context, name)
        if own is not None or name not in (plugins := _plugins()):
            return own
        command = plugins[name].load()
        if not isinstance(command, click.Command):
            raise TypeError(f"The entry point {plugins[name].value} is not a click command.")
        return command

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except ColdframeError as exc:
            raise click.ClickException(str(exc)) from exc


def _plugins() -> dict[str, EntryPoint]:
    return {plugin.name: plugin for plugin in entry_points(group=PLUGINS)}
