"""Jobs through real processes, as `python -m tests.jobs_processes` runs more of them."""

from __future__ import annotations

import pytest

from tests.jobs_processes import Run

pytestmark = pytest.mark.anyio


async def test_jobs_survive_kills_and_failing_stores() -> None:
    """Every job is answered as POST /v1/predict answers, whatever is killed and whatever fails."""
    found = await Run(jobs=40, seed=1, fails=0.03, kill_every_s=4.0).prove()
    assert (found.lost, found.wrong, found.changed) == ([], [], [])
    assert found.done == 40
    assert found.failed_calls
