"""How items become batches."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.capacity import limits
from coldframe_local.emulator.state_machines.batches import ItemTooLarge, Limits, batches

ITEMS = st.lists(st.dictionaries(st.text(max_size=4), st.text(max_size=40), max_size=3), max_size=60)


@given(ITEMS, st.integers(0, 9), st.integers(1200, 4000))
def test_batches_hold_every_item_once_in_order(items: list[Any], most_items: int, most_bytes: int) -> None:
    """No item is lost, repeated or moved; a batch is within its limits, and the next item would not be."""
    made = list(batches(items, Limits(most_items, most_bytes), {"heads": ["rf"]}))
    assert [item for batch in made for item in batch["Items"]] == items
    for batch, following in zip(made, [*made[1:], None], strict=False):
        assert batch["BatchInput"] == {"heads": ["rf"]}
        assert len(msgspec.json.encode(batch)) <= most_bytes
        assert not most_items or len(batch["Items"]) <= most_items
        if following is not None:
            longer = {**batch, "Items": [*batch["Items"], following["Items"][0]]}
            full = most_items and len(batch["Items"]) == most_items
            assert full or len(msgspec.json.encode(longer)) > most_bytes - 1


def test_an_item_too_large_for_a_child_is_named() -> None:
    """An item over 256 KiB ends the run with its number."""
    items = ["short", "x" * limits.EXECUTION_DATA.value]
    with pytest.raises(ItemTooLarge, match="Item 1 takes"):
        list(batches(items, Limits(10), {}))
