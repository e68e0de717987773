"""The proof that no job is lost: a share of it. `python -m tests.jobs_proof` runs it whole."""

from __future__ import annotations

import pytest

from coldframe.jobs.records import Job, Result
from tests.jobs_proof import prove
from tests.jobs_world import MemoryStore, replace


@pytest.mark.parametrize(
    ("seed", "fails", "kills"), [(1, 0.02, 0.001), (2, 0.1, 0.003), (3, 0.0, 0.01), (4, 0.2, 0.0)]
)
def test_no_job_is_lost(seed: int, fails: float, kills: float) -> None:
    """Under kills and a failing store every job ends, with the right answers, told to who asked, once."""
    proof = prove(2000, seed, fails, kills)
    assert (proof.lost, proof.wrong, proof.untold) == ([], [], [])
    assert proof.done + proof.failed + proof.cancelled == 2000
    assert proof.texts < 2 * proof.answered


def test_without_faults_nothing_is_repeated() -> None:
    """Without a fault a text is answered once, but for poison's neighbours and messages delivered twice."""
    proof = prove(2000, 1, fails=0.0, kills=0.0)
    assert proof.texts < 1.05 * proof.answered


def test_the_proof_notices_a_store_without_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that records what is recorded already would answer twice, and the proof says so."""

    def record(store: MemoryStore, job_id: str, result: Result) -> Job | None:
        store.parts.setdefault(job_id, {})[result.part] = result
        job = store.jobs[job_id]
        store.jobs[job_id] = replace(job, done=len(store.parts[job_id]))
        return store.jobs[job_id]

    monkeypatch.setattr(MemoryStore, "record", record)
    monkeypatch.setattr(MemoryStore, "recorded", lambda store, parts: set())
    assert prove(2000, 2, 0.1, 0.003).wrong


def test_the_proof_notices_a_lost_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that forgets what it could not do would lose jobs, and the proof says so."""
    monkeypatch.setattr("coldframe.jobs.worker._Batch.run", lambda batch, messages: [])
    assert len(prove(100, 1).lost) > 90
