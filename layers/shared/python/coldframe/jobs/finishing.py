"""Ends of jobs. Each change to an end triggers a notice; the sweeper ends jobs without messages."""

from coldframe.jobs.ports import Queue, Store
from coldframe.jobs.records import Job, Notify
from coldframe.jobs.states import Event

_NEXT_NOTICE_S = 3600.0
_SILENT = "its messages were lost before it was answered"


def end(job: Job, event: Event, store: Store, control: Queue, reason: str = "") -> Job:
    """Ends a job, and requests a notice where its caller wants one. Raises Unavailable.

    After an interruption between the two steps, the sweeper sends the notice.
    """
    ended = store.end(job, event, reason)
    if ended is None:
        return store.get(job.id) or job
    if ended.push is not None:
        control.send([Notify(ended.id, ended.generation)])
    return ended


def end_if_answered(job: Job, store: Store, control: Queue) -> Job:
    """Ends a job whose parts are all answered. Raises Unavailable."""
    if job.is_answered and not job.state.has_ended:
        return end(job, Event.FINISH, store, control)
    return job


def sweep(store: Store, control: Queue, now_s: float) -> int:
    """Ends jobs that can have no messages left, and repeats missing notices. Raises Unavailable.

    Returns the number of jobs that were due.
    """
    count = 0
    for job in store.due(now_s):
        count += 1
        if job.state.has_ended:
            control.send([Notify(job.id, job.generation)])
        elif job.is_answered:
            end_if_answered(job, store, control)
        else:
            end(job, Event.FAIL, store, control, _SILENT)
        if job.push is not None:
            store.postpone(job, now_s + _NEXT_NOTICE_S)
    return count
