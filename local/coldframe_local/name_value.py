"""The option `--parameter NAME=VALUE`, which every command that reads a template has."""

from __future__ import annotations

import click


class NameValue(click.ParamType[tuple[str, str]]):
    """NAME=VALUE, as a pair."""

    name = "NAME=VALUE"

    def convert(
        self, value: str | tuple[str, str], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, rest = value.partition("=")
        if not name or not equals:
            self.fail(f"found {value!r}, expected NAME=VALUE", param, ctx)
        return name, rest


template_parameters = click.option(
    "--parameter",
    "parameters",
    multiple=True,
    type=NameValue(),
    metavar="NAME=VALUE",
    help="A parameter of the template; may be repeated.",
)
