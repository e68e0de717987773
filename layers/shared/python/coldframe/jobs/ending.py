"""How a job ends that has all it needs to: by whoever finds out first, and by nobody twice."""

from coldframe.jobs.ports import Queue, Store
from coldframe.jobs.records import Job, Notify
from coldframe.jobs.states import Event, State


def settle(job: Job, store: Store, queue: Queue) -> Job:
    """Ends a job whose parts are all there, and has whoever waits for it told. Raises Unavailable.

    Whoever is interrupted here was sent by a message, or by a caller, that comes again.
    """
    if job.parts is not None and job.done >= job.parts:
        if job.state is State.QUEUED:
            job = store.apply(job.id, Event.BEGIN) or job
        if job.state is State.RUNNING:
            job = store.apply(job.id, Event.FINISH) or job
    if job.state.has_ended and job.push is not None and not job.notified:
        queue.send([Notify(job.id)])
    return job
