"""The group of commands behind `coldframe`: its own, and commands of other packages."""

from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any

import click

from coldframe.errors import ColdframeError

PLUGINS = "coldframe.commands"
"""Entry points by which a package adds a command, as `bench` does in pyproject.toml.
The wheel holds no `bench`: an entry point without its package adds nothing."""


_OTHERS = "Measure"
_WHOLE = 1000  # characters of a summary, which is never cut

PROGRAM = "program"
"""The context's object where this process runs one command, and not a test runner or another program."""


class Group(click.Group):
    """A group whose `--help` cuts no summary, and lists commands by title where they have one."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._sections: dict[str, list[str]] = {}

    def add_section(self, title: str, commands: Sequence[click.Command]) -> None:
        """Adds commands, which `--help` shows under this title."""
        for command in commands:
            self.add_command(command)
        self._sections[title] = [str(command.name) for command in commands]

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes a list of commands for each title, then the other commands."""
        listed = {name for names in self._sections.values() for name in names}
        others = [name for name in self.list_commands(context) if name not in listed]
        for title, names in (*self._sections.items(), (_OTHERS if listed else "Commands", others)):
            commands = ((name, self.get_command(context, name)) for name in names)
            rows = [(name, command.get_short_help_str(_WHOLE)) for name, command in commands if command]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class CommandGroup(Group):
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
    plugins = entry_points(group=PLUGINS)
    return {plugin.name: plugin for plugin in plugins if find_spec(plugin.module.partition(".")[0])}
