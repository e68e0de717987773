"""What the scheduler is compared with does what it says."""

from coldframe.scheduling.jobs import Job, Outcome, Reason, Refusal, Work
from coldframe.scheduling.limits import Limits
from coldframe.scheduling.scheduler import Run
from coldframe_bench.benchmarks.serve.policies import FixedDelay


def work(*lengths: int) -> Work:
    return Work("encoder", lengths)


def run_of(queue: FixedDelay, now_s: float) -> Run:
    run = queue.next_run(now_s)
    assert run is not None
    return run


def test_waits_for_company() -> None:
    """A batch begins when its oldest row has waited for the delay, and rests until then."""
    queue = FixedDelay(Limits(), delay_s=0.005, batch_rows=4)
    queue.offer(work(8), 1.0)
    queue.offer(work(8), 1.002)
    assert queue.next_run(1.003) is None
    assert 0.0019 < (queue.rest_s(1.003) or 0.0) < 0.0021
    assert len(run_of(queue, 1.005).planned.entries) == 2


def test_a_full_batch_waits_no_longer() -> None:
    """Rows of a full batch run at once, those of one length in one pass."""
    queue = FixedDelay(Limits(), delay_s=0.005, batch_rows=4)
    jobs = [queue.offer(work(8, 16), 1.0), queue.offer(work(16, 8), 1.0)]
    assert all(isinstance(job, Job) for job in jobs)
    runs = [run_of(queue, 1.0), run_of(queue, 1.0)]
    assert [(run.planned.group.length, len(run.planned.entries)) for run in runs] == [(8, 2), (16, 2)]
    assert queue.next_run(1.0) is None
    for run in runs:
        assert not queue.is_idle
        queue.finish(run, 1.1)
    assert [outcome for _, outcome in queue.take_ended()] == [Outcome.DONE] * 2
    assert queue.is_idle


def test_without_delay_one_after_another() -> None:
    """Batches of one row are a plain queue, in the order of arrival, bounded by rows."""
    queue = FixedDelay(Limits(max_queue_rows=2), delay_s=0.0, batch_rows=1)
    first, second = queue.offer(work(64), 0.0), queue.offer(work(8), 0.0)
    full = queue.offer(work(8), 0.0)
    assert isinstance(full, Refusal)
    assert full.reason is Reason.FULL
    assert [run_of(queue, 0.0).planned.entries[0][0] for _ in range(2)] == [first, second]
