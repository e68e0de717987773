"""Items in batches, as Step Functions' ItemBatcher makes them.

Source: https://docs.aws.amazon.com/step-functions/latest/dg/input-output-itembatcher.html, read 2026-11-22.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from coldframe.capacity import limits
from coldframe.errors import ColdframeError


class ItemTooLarge(ColdframeError):
    """An item is too large for a batch of its own; `States.ItemBatcherFailed` on AWS."""


@dataclass(frozen=True)
class Limits:
    """Limits of one batch. items: largest number; bytes_: largest size of the child's input as JSON."""

    items: int
    bytes_: int = limits.EXECUTION_DATA.value


def batches(items: Iterable[Any], most: Limits, batch_input: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The input of each child. The same items give the same batches. Raises ItemTooLarge."""
    envelope = {"BatchInput": dict(batch_input)} if batch_input else {}
    empty_bytes = len(msgspec.json.encode(envelope | {"Items": []}))
    allowed_bytes = limits.EXECUTION_DATA.value
    most_bytes = min(most.bytes_ or allowed_bytes, allowed_bytes)
    batch: list[Any] = []
    size_bytes = empty_bytes
    for number, item in enumerate(items):
        item_bytes = len(msgspec.json.encode(item)) + 1  # and a comma
        if empty_bytes + item_bytes > most_bytes:
            raise ItemTooLarge(
                f"Item {number} takes {item_bytes} bytes as JSON, and a batch may have {most_bytes}."
                " Leave it out or cut it, or read its columns only."
            )
        if batch and (len(batch) == most.items or size_bytes + item_bytes > most_bytes):
            yield envelope | {"Items": batch}
            batch, size_bytes = [], empty_bytes
        batch.append(item)
        size_bytes += item_bytes
    if batch:
        yield envelope | {"Items": batch}
