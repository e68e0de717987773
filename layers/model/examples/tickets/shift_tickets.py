"""Tickets of three later months: the first is like the training's, then customers ask for other things.

python -m examples.tickets.shift_tickets FOLDER
"""

import csv
import sys
import tomllib
from itertools import islice
from pathlib import Path
from typing import Any

from examples.tickets.make_tickets import HERE, Dice, Ticket, Writer

MONTHS = {"month-1.csv": 1, "month-2.csv": 2, "month-3.csv": 3}
"""Seed of each month. Months 2 and 3 are shifted: other shares of queues, and requests that are new."""

_FIRST_SHIFTED = 2
_ROWS = 400
_KNOWN_ASKS = 15  # of a queue in the first table
_QUEUES = ("bug_report", "login", "account", "cancellation")


def shift(phrases: dict[str, Any]) -> dict[str, Any]:
    """Phrases of four queues, with the requests that the first table does not have."""
    queues = {
        name: queue | {"asks": queue["asks"][_KNOWN_ASKS:]}
        for name, queue in phrases["queues"].items()
        if name in _QUEUES
    }
    return phrases | {"queues": queues}


def make_months(folder: Path) -> None:
    """Writes the table of each month to `folder`: the same bytes each time."""
    usual = tomllib.loads((HERE / "phrases.toml").read_text("utf-8"))
    for name, seed in MONTHS.items():
        phrases = shift(usual) if seed >= _FIRST_SHIFTED else usual
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(Ticket._fields)
            writer.writerows(islice(Writer(phrases, Dice(seed)).tickets(), _ROWS))


if __name__ == "__main__":
    make_months(Path(sys.argv[1]))
