"""Texts of many kinds, of our own writing: what hardly any model was trained for.

A good out-of-distribution score tells them from held-out rows. The limit: some of them may belong to a user's
labels. A model of support tickets is right to find the lines about parcels and refunds usual.
"""

from pathlib import Path

import msgspec

_FILE = Path(__file__).with_suffix(".jsonl")


class OtherText(msgspec.Struct, frozen=True):
    """One text, and what kind of text it is."""

    kind: str
    text: str


def other_texts() -> list[OtherText]:
    """All of them, in the order of the file."""
    return msgspec.json.Decoder(OtherText).decode_lines(_FILE.read_bytes())
