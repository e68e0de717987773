"""Process that prints the report on a store's experiment, as JSON for the console.

boto3's import and calls would stop the emulator's requests, so each reading is a process of its own.
"""

import sys

import msgspec

from coldframe.experiments.control import Control
from coldframe.experiments.report import Report, present_report
from coldframe.experiments.stores import StoreFails
from coldframe.experiments.table import open_store

_PATIENCE_S = 3.0


class Reading(msgspec.Struct, frozen=True):
    """Answer of `/_experiment`.

    has_store: whether the function has a store of experiments. report: None without an experiment.
    problem: why the store cannot be read, or an empty text.
    """

    has_store: bool
    report: Report | None = None
    problem: str = ""


def read(place: str) -> Reading:
    """The reading of a store. place: a table, or a folder's path."""
    store = open_store(place, _PATIENCE_S)
    try:
        return Reading(True, present_report(Control(store, patience_s=_PATIENCE_S)))
    except StoreFails as exc:
        return Reading(True, problem=f"The experiment cannot be read: {exc}. Check COLDFRAME_EXPERIMENTS.")


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(read(sys.argv[1])))
