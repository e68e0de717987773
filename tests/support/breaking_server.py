"""`coldframe.server` with a defect: the pass of a request in no hurry ends its device's thread."""

import sys

from coldframe.scheduling.scheduler import Run, Scheduler
from coldframe.server.__main__ import main

_finish = Scheduler.finish


def finish(self: Scheduler, run: Run, now_s: float, failed: bool = False) -> None:
    if any(job.work.bulk for job in run.planned.jobs()):
        raise ZeroDivisionError("a quokka")
    _finish(self, run, now_s, failed)


if __name__ == "__main__":
    Scheduler.finish = finish  # type: ignore[method-assign]
    sys.exit(main())
