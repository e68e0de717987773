"""The proof that no job is lost: a share of it. `python -m tests.jobs_proof` runs it whole."""

from __future__ import annotations

import pytest

from coldframe.jobs.object_file import Pin
from coldframe.jobs.ports import Store
from coldframe.jobs.records import Job, PartName, Result
from tests.jobs_proof import prove
from tests.support.jobs_world import MemoryObjects, MemoryStore


@pytest.mark.parametrize(
    ("seed", "fails", "kills"), [(1, 0.02, 0.001), (2, 0.1, 0.003), (3, 0.0, 0.005), (4, 0.2, 0.0)]
)
def test_no_job_is_lost(seed: int, fails: float, kills: float) -> None:
    """Under kills, races and failing services every job ends, with the right answers, and notified."""
    proof = prove(1500, seed, fails, kills)
    assert (proof.lost, proof.wrong, proof.untold) == ([], [], [])
    assert proof.done + proof.failed + proof.cancelled >= 1500
    assert proof.texts < 2 * proof.answered
    assert proof.nested


def test_without_faults_nothing_is_repeated() -> None:
    """Without a fault a text is answered once, but for those of jobs that failed or were cancelled."""
    proof = prove(1500, 1, fails=0.0, kills=0.0)
    assert proof.texts < 1.05 * proof.answered


def test_the_proof_notices_a_store_without_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that records what is recorded already would answer twice, and the proof says so."""

    keep = MemoryStore.put_result

    def put_result(store: MemoryStore, job: Job, result: Result) -> None:
        store.parts.get((job.id, job.generation), {}).pop(result.part, None)
        keep(store, job, result)

    def recorded(store: MemoryStore, parts: list[PartName]) -> set[PartName]:
        return set()

    monkeypatch.setattr(MemoryStore, "put_result", put_result)
    monkeypatch.setattr(MemoryStore, "recorded", recorded)
    assert prove(1500, 2, 0.1, 0.003).wrong


def test_the_proof_notices_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that is read as it is, and not as it was, would answer for another object."""

    def read_range(objects: MemoryObjects, uri: str, pin: Pin, first: int, last: int) -> bytes:
        return objects.contents[uri][first : last + 1]

    monkeypatch.setattr(MemoryObjects, "read_range", read_range)
    assert prove(1500, 1).wrong


def test_the_proof_notices_an_expiry_that_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that is refused for one that has expired would be lost a week later."""

    def create(store: MemoryStore, job: Job) -> Job:
        return store.jobs.setdefault(job.id, job)

    monkeypatch.setattr(MemoryStore, "create", create)
    assert prove(500, 1).lost


def test_the_proof_notices_notices_that_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the sweep, a notice whose sender was killed would never be sent."""

    def due(store: Store, now_s: float) -> list[Job]:
        return []

    monkeypatch.setattr(MemoryStore, "due", due)
    monkeypatch.setattr(MemoryStore, "next_due_s", lambda store: float("inf"))
    assert prove(1500, 2, 0.1, 0.003).untold


def test_the_proof_notices_a_lost_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that forgets what it could not do would lose jobs, and the proof says so."""
    monkeypatch.setattr("coldframe.jobs.worker._Batch.run", lambda batch, messages: [])
    assert len(prove(100, 1).wrong) > 90
