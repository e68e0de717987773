"""Statistics of a scheduler, and of the ones before it."""

from dataclasses import asdict
from typing import Any

from coldframe.scheduling.stats import Stats

STATE: dict[str, Any] = {
    "queued_jobs": 9,
    "queued_rows": 8,
    "queued_bytes": 7,
    "running_passes": 6,
    "budget_tokens": 5,
    "expected_wait_s": 4.0,
}


def test_every_counter_goes_on() -> None:
    """Counters add up over schedulers, whichever there are; the state is the later scheduler's."""
    ones = Stats(**dict.fromkeys(asdict(Stats()), 1))
    total = asdict(ones.at(**STATE).after(ones))
    assert total == dict.fromkeys(total, 2) | STATE
