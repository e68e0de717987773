"""`coldframe bench …`: nothing is imported before it is needed."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from coldframe_bench.commands import printed, recorded
from coldframe_bench.commands.warm import warm
from coldframe_local.command_group import PROGRAM, Group


@click.group(cls=Group)
@click.pass_context
def bench(context: click.Context) -> None:
    """Measure, against a floor taken in the same run."""
    if context.find_root().obj == PROGRAM:
        context.with_resource(_ended_like_ctrl_c())


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Has SIGTERM end first what was started to be measured. Only for a process that runs nothing else."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


for _command in (*recorded.COMMANDS, *printed.COMMANDS, warm):
    bench.add_command(_command)
