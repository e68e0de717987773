"""`coldframe`: the one command of the project."""

import click

from coldframe import __version__
from local.command_group import CommandGroup
from local.commands.check import check
from local.commands.homes import homes
from local.commands.model import fill_cache, predict, verify
from local.commands.models import models
from local.commands.monitor import monitor
from local.commands.offline import offline
from local.commands.plan import plan
from local.commands.serve import serve
from local.commands.simulate import simulate
from local.commands.sql import sql
from local.commands.training import build, train
from local.commands.up import up
from local.commands.warm import warm


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="coldframe")
def main() -> None:
    """Text classification on AWS Lambda with its cold starts under control."""


_COMMANDS = (
    up,
    serve,
    verify,
    predict,
    fill_cache,
    build,
    train,
    models,
    check,
    simulate,
    plan,
    offline,
    homes,
    sql,
    warm,
    monitor,
)
for _command in _COMMANDS:
    main.add_command(_command)


if __name__ == "__main__":
    main()
