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

from local.commands.scenario_settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

COMMENTED_FILE = Path(__file__).parent / "scenario.toml"
"""Scenario file with the meaning of every setting, and its default or an example."""

_ENTRY = re.compile(r"^# (?P<about>.*)\n(?P<mark>#?)(?P<name>\w+) = (?P<value>.*)$", re.MULTILINE)
_ENTRIES = {entry["name"]: entry for entry in _ENTRY.finditer(COMMENTED_FILE.read_text(encoding="utf-8"))}
_TYPES = {setting.name: setting.type for setting in fields(Settings)}
_UNSET = (None, ())


class _Value(click.ParamType[Any]):
    """A setting's value on the command line, checked as the value in a file is."""

    name = "value"

    def __init__(self, setting: str, is_repeated: bool) -> None:
        self._type, self._is_repeated = _TYPES[setting], is_repeated

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Checked value."""
        try:
            if self._is_repeated:
                return msgspec.convert((value,), self._type, strict=False)[0]
            return msgspec.convert(value, self._type, strict=False)
        except msgspec.ValidationError as exc:
            self.fail(f"{value!r} cannot be used. {exc}. Correct the value.", param, ctx)


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
        type=None if is_flag else _Value(setting, is_repeated),
        is_flag=is_flag,
        multiple=is_repeated,
        default=None,
        help=f"{entry['about']}{' Repeatable.' * is_repeated}  [default: {default}]",
    )


def read_settings(path: Path | None, options: Mapping[str, object]) -> Settings:
    """Settings of a scenario file, overridden by options that are set. Raises click.UsageError."""
    overrides = {name: value for name, value in options.items() if value not in _UNSET}
    return msgspec.convert((_document(path) if path else {}) | overrides, Settings)


def _document(path: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as exc:
        raise click.UsageError(f"{path} is not TOML: {exc}. Correct this place.") from exc
    for name, value in document.items():
        if name not in _TYPES:
            (nearest,) = get_close_matches(name, _TYPES, 1, 0.0)
            raise click.UsageError(
                f"{path}: {name} is not a setting. Use {nearest}, or another name that"
                " `coldframe plan --print-scenario` prints."
            )
        try:
            msgspec.convert(value, _TYPES[name])
        except msgspec.ValidationError as exc:
            raise click.UsageError(
                f"{path}: {name} = {value!r} cannot be used. {exc}. {_ENTRIES[name]['about']}"
                " Correct the value."
            ) from exc
    return document
