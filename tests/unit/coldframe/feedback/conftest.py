"""A table of feedback in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.dynamodb import create_table, dynamodb_in_memory


@pytest.fixture
def client() -> Iterator[Any]:
    """A client of DynamoDB in memory, with an empty table."""
    with dynamodb_in_memory() as client:
        create_table(client, "feedback", "day", "nonce")
        yield client
