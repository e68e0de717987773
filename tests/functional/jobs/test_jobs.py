"""Jobs through real processes, as `python -m tests.jobs_processes` runs more of them."""

from __future__ import annotations

import pytest

from tests.jobs_processes import Run

pytestmark = [pytest.mark.waits, pytest.mark.anyio]


async def test_jobs_survive_kills_and_failing_stores() -> None:
    """Every job ends as it is to end, whatever is killed and whatever fails.

    It is answered as POST /v1/predict answers, also where it was repeated, cancelled or had expired before. A
    spoilt source fails its own job alone, and a changed one never gives answers to two versions of itself.
    """
    found = await Run(jobs=40, seed=1, fails=0.03, kill_every_s=4.0).prove()
    assert (found.lost, found.wrong, found.changed) == ([], [], [])
    assert found.holds
    assert found.failed_calls
    assert set(found.kinds) == {"texts", "source", "spoilt", "repeated", "cancelled", "expired", "changed"}
