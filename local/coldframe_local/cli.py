"""`coldframe`: the one command of the project."""

import click

from coldframe import __version__
from coldframe_local.command_group import CommandGroup
from coldframe_local.commands.check import check
from coldframe_local.commands.experiment import experiment
from coldframe_local.commands.feedback import feedback
from coldframe_local.commands.homes import homes
from coldframe_local.commands.model import fill_cache, predict, verify
from coldframe_local.commands.models import models
from coldframe_local.commands.monitor import monitor
from coldframe_local.commands.offline import offline
from coldframe_local.commands.plan import plan
from coldframe_local.commands.prices import prices
from coldframe_local.commands.serve import serve
from coldframe_local.commands.simulate import simulate
from coldframe_local.commands.sql import sql
from coldframe_local.commands.training import build, train
from coldframe_local.commands.up import up
from coldframe_local.new_project.encoder import encoder
from coldframe_local.new_project.new import new

GROUPS = {
    "Try": (new, up, predict, serve),
    "Train": (train, build, verify, models, encoder),
    "Plan": (plan, simulate, homes, prices),
    "Deploy and watch": (check, sql, fill_cache, monitor, feedback, experiment),
    "Process many texts": (offline,),
}
"""Commands by what a person wants to do. Commands of other packages follow."""


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="coldframe")
def main() -> None:
    """Text classification on AWS Lambda with its cold starts under control."""


for _title, _commands in GROUPS.items():
    main.add_section(_title, _commands)


if __name__ == "__main__":
    main()
