"""Scenario files: settings in TOML, and options of commands that override them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click
import msgspec
from msgspec.structs import fields

from coldframe_local.commands.scenario_settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

COMMENTED_FILE = Path(__file__).parent / "scenario.toml"
"""Scenario file with the meaning of every setting, and its default or an example."""

_ENTRY = re.compile(r"^# (?P<about>.*)\n(?P<mark>#?)(?P<name>\w+) = (?P<value>.*)$", re.MULTILINE)
_ENTRIES = {entry["name"]: entry for entry in _ENTRY.finditer(COMMENTED_FILE.read_text(encoding="utf-8"))}
_TYPES = {setting.name: setting.type for setting in fields(Settings)}
_UNSET = (None, ())


def scenario_options(*names: str, **flags: str) -> Callable[[F], F]:
    """Adds --scenario, and an option for each setting; the command gets all settings as `settings`.

    flags: settings whose option has another name, by this name.
    """
    options = {name: name for name in names} | flags

    def add(command: F) -> F:
        @wraps(command)
        def with_settings(scenario: Path | None, **arguments: Any) -> Any:
            values = {setting: arguments.pop(option) for option, setting in options.items()}
            return command(settings=read_settings(scenario, values), **arguments)

        decorated: Any = with_settings
        for option, setting in reversed(options.items()):
            decorated = _option(option, setting)(decorated)
        return cast("F", _SCENARIO(decorated))

    return add


_SCENARIO = click.option(
    "--scenario",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file with further settings, which options override. `coldframe plan --print-scenario` prints"
    " one to start from.  [default: no file]",
)


def _option(option: str, setting: str) -> Callable[[F], F]:
    entry = _ENTRIES[setting]
    sample = tomllib.loads(f"value = {entry['value']}")["value"]
    is_flag, is_repeated = isinstance(sample, bool), isinstance(sample, list)
    default = "unset" if entry["mark"] else entry["value"].strip('[]"')
    return click.option(
        f"--{option.replace('_', '-')}",
        option,
        is_flag=is_flag,
        metavar=None if is_flag else "VALUE",
        multiple=is_repeated,
        default=None,
        help=f"{entry['about']}{' Repeatable.' * is_repeated}  [default: {default}]",
    )


def read_settings(path: Path | None, options: Mapping[str, object]) -> Settings:
    """Settings of a scenario file, overridden by options that are set. Raises click.UsageError."""
    overrides = {name: value for name, value in options.items() if value not in _UNSET}
    values = {name: _checked("command line", name, value, strict=False) for name, value in overrides.items()}
    return Settings(**(_document(path) if path else {}) | values)


def _document(path: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as exc:
        raise click.UsageError(f"{path} is not TOML: {exc}. Correct this place.") from exc
    return {name: _checked(str(path), name, value) for name, value in document.items()}


def _checked(source: str, name: str, value: object, strict: bool = True) -> Any:
    if name not in _TYPES:
        (nearest,) = get_close_matches(name, _TYPES, 1, 0.0)
        raise click.UsageError(
            f"{source}: {name} is not a setting. Use {nearest}, or another name that"
            " `coldframe plan --print-scenario` prints."
        )
    try:
        return msgspec.convert(value, _TYPES[name], strict=strict)
    except msgspec.ValidationError as exc:
        about = _ENTRIES[name]["about"]
        raise click.UsageError(
            f"{source}: {name} = {value!r} cannot be used. {exc}. {about} Correct the value."
        ) from exc
