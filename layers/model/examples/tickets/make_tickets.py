"""The example's tables: support tickets of a made-up shop, put together from phrases by a seeded dice.

python layers/model/examples/tickets/make_tickets.py [FOLDER]
"""

import csv
import random
import sys
import tomllib
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
SEED = 12
TABLES = {"tickets.csv": 414, "tickets-2.csv": 297, "tickets-test.csv": 198}
"""Rows of each table in the order of time: to start with, to retrain with, and kept aside to compare with."""

_BUSY = ("delivery", "refund", "returns")  # queues with more tickets than the others
_KNOWN_ASKS = 15  # of a queue in the first table; what customers ask for changes with time
_NEW_CUSTOMER = 0.6  # share of tickets; the others come from somebody who wrote before
_ASIDE, _TWO_MATTERS = 0.2, 0.04  # shares of tickets that mention another queue's matter, or ask for it too
_MISFILED = 0.015  # share of tickets with the label of another queue, as a busy team files them
_ENDS = frozenset(".!?")
_QUESTIONS = ("can", "could", "do", "does", "how", "is", "what", "when", "where", "which", "why", "will")


class Ticket(NamedTuple):
    """A row of a table."""

    id: int
    customer: str
    queue: str
    body: str


class Manner(NamedTuple):
    """How a customer writes: rows of one customer resemble each other.

    between: what separates greeting, matter and signature.
    """

    customer: str
    opening: str
    closing: str
    name: str
    between: str
    is_short: bool
    is_lower: bool
    is_hasty: bool


class Dice:
    """Draws of a seed, by `random()` alone: of the others, Python versions may differ."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def below(self, end: int) -> int:
        """One of 0 to end - 1."""
        return int(self._random() * end)

    def one_of(self, things: Sequence[str]) -> str:
        """Each as likely as the others."""
        return things[self.below(len(things))]

    def happens(self, share: float) -> bool:
        """True in that share of the calls."""
        return self._random() < share

    def shuffled(self, things: Sequence[str]) -> list[str]:
        """All of them in another order."""
        keyed = [(self._random(), thing) for thing in things]
        return [thing for _, thing in sorted(keyed)]


class Writer:
    """Writes tickets, one after the other; no body twice."""

    def __init__(self, phrases: dict[str, Any], dice: Dice) -> None:
        self._phrases, self._dice = phrases, dice
        self._queues: dict[str, dict[str, list[str]]] = phrases["queues"]
        self._asks: dict[str, list[str]] = {queue: [] for queue in self._queues}
        self._customers: list[Manner] = []
        self._bodies: set[str] = set()

    def tickets(self) -> Iterator[Ticket]:
        """Without an end."""
        names = [*self._queues, *(queue for queue in _BUSY if queue in self._queues)]
        for number in count():
            queue = self._dice.one_of(names)
            body = self._new_body(queue, asks=_KNOWN_ASKS if number < TABLES["tickets.csv"] else None)
            manner = self._customers[-1]
            filed = self._other(queue) if self._dice.happens(_MISFILED) else queue
            yield Ticket(5001 + number, manner.customer, filed, body)

    def _new_body(self, queue: str, asks: int | None) -> str:
        while True:
            manner = self._next_customer()
            body = self._in_manner(self._matter(queue, asks, manner.is_short), manner)
            if body.lower() not in self._bodies:
                self._bodies.add(body.lower())
                return body

    def _next_customer(self) -> Manner:
        """Somebody, who is then the last of the customers."""
        if self._customers and not self._dice.happens(_NEW_CUSTOMER):
            self._customers.append(self._customers.pop(self._dice.below(len(self._customers))))
        else:
            self._customers.append(self._somebody(f"C-{1001 + len(self._customers)}"))
        return self._customers[-1]

    def _somebody(self, customer: str) -> Manner:
        dice, phrases = self._dice, self._phrases
        name = dice.one_of(phrases["names"]) if dice.happens(0.4) else ""
        between = dice.one_of([" ", " ", " ", "\n", "\n\n"])
        opening, closing = (self._filled(dice.one_of(phrases[part])) for part in ("openings", "closings"))
        is_short, is_lower, is_hasty = (dice.happens(share) for share in (0.3, 0.12, 0.2))
        return Manner(customer, opening, closing, name, between, is_short, is_lower, is_hasty)

    def _matter(self, queue: str, asks: int | None, is_short: bool) -> str:
        """Sentences about what the customer wants."""
        dice, of_queue = self._dice, self._queues[queue]
        request = self._ask(queue, asks)
        if is_short and dice.happens(0.6):
            return request
        others = [dice.one_of(of_queue["details"])] if dice.happens(0.65) else []
        others += dice.shuffled(self._phrases["fillers"])[: dice.below(2 if is_short else 3)]
        if dice.happens(_ASIDE):
            others.append(dice.one_of(self._queues[self._other(queue)]["asides"]))
        if dice.happens(_TWO_MATTERS):
            others.append(self._ask(self._other(queue), asks))
        place = dice.below(2)  # the matter comes first, or after one of the others
        sentences = [self._filled(sentence) for sentence in dice.shuffled(others)]
        return " ".join([*sentences[:place], request, *sentences[place:]])

    def _ask(self, queue: str, asks: int | None) -> str:
        """Each of a queue's asks comes before one of them comes again."""
        if not self._asks[queue]:
            self._asks[queue] = self._dice.shuffled(self._queues[queue]["asks"][:asks])
        ask = self._filled(self._asks[queue].pop())
        if ask[-1] in _ENDS:
            return ask
        return ask + ("?" if ask.split()[0].lower() in _QUESTIONS else ".")

    def _other(self, queue: str) -> str:
        return self._dice.one_of([name for name in self._queues if name != queue])

    def _filled(self, phrase: str) -> str:
        choices = {name: self._dice.one_of(words) for name, words in self._phrases["words"].items()}
        return phrase.format_map(choices | {"order": str(40_000 + self._dice.below(50_000))})

    def _in_manner(self, matter: str, manner: Manner) -> str:
        if manner.is_short:
            body = matter
        else:
            end = ("\n" if "\n" in manner.between else " ").join(filter(None, [manner.closing, manner.name]))
            body = manner.between.join(filter(None, [manner.opening, matter, end]))
        if manner.is_hasty:
            body = self._mistyped(body)
        return body.lower().rstrip(".") if manner.is_lower else body

    def _mistyped(self, text: str) -> str:
        """One or two slips: letters change places, one is missing or there twice."""
        for _ in range(1 + self._dice.below(2)):
            place = 1 + self._dice.below(len(text) - 2)
            pair = text[place : place + 2]
            if pair.isalpha():
                slip = self._dice.one_of([pair[::-1], pair[0], pair[0] + pair])
                text = text[:place] + slip + text[place + 2 :]
        return text


def make_tables(folder: Path) -> None:
    """Writes every table to `folder`: the same bytes each time."""
    phrases = tomllib.loads((HERE / "phrases.toml").read_text("utf-8"))
    tickets = Writer(phrases, Dice(SEED)).tickets()
    for name, rows in TABLES.items():
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(Ticket._fields)
            writer.writerows(islice(tickets, rows))


if __name__ == "__main__":
    make_tables(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
