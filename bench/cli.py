"""`coldframe bench …`: nothing is imported before it is needed."""

import signal
import sys

import click

from bench.commands import printed, recorded


@click.group()
def bench() -> None:
    """Measure, against a floor taken in the same run."""
    # Like Ctrl-C: what was started to be measured is ended first.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


for _command in (*recorded.COMMANDS, *printed.COMMANDS):
    bench.add_command(_command)
