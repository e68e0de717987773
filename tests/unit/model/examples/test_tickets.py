"""The tables of the tickets example are what their script makes, and what a table of tickets is like."""

import csv
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from examples.tickets.make_tickets import HERE, TABLES


def rows_of(name: str) -> list[dict[str, str]]:
    """The rows of a committed table."""
    with (HERE / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_tables_are_what_the_script_makes(tmp_path: Path) -> None:
    """The script writes the committed tables again, to the byte."""
    subprocess.run([sys.executable, HERE / "make_tickets.py", tmp_path], check=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        name: (HERE / name).read_bytes() for name in TABLES
    }


def test_no_ticket_is_there_twice() -> None:
    """In all tables together each id and each body comes once, so that no test row was trained on."""
    rows = [row for name in TABLES for row in rows_of(name)]
    assert len(rows) == sum(TABLES.values())
    assert len({row["id"] for row in rows}) == len({row["body"].lower() for row in rows}) == len(rows)


@pytest.mark.parametrize("name", TABLES)
def test_table_is_like_a_real_one(name: str) -> None:
    """Nine queues of uneven size, customers with several tickets, line ends, commas and quotes in bodies."""
    rows = rows_of(name)
    queues = Counter(row["queue"] for row in rows)
    assert len(queues) == 9
    assert 10 <= min(queues.values()) < max(queues.values()) / 2
    assert max(Counter(row["customer"] for row in rows).values()) >= 2
    bodies = [row["body"] for row in rows]
    for part in ("\n", ",", '"'):
        assert any(part in body for body in bodies), part
    lengths = sorted(map(len, bodies))
    assert lengths[0] < 40 < 200 < lengths[-1]
