"""The function of whole jobs: it divides sources, sends notices, and sweeps on a schedule.

It is separate, so a slow source or webhook delays no answers. It loads no model.
"""

import os
import random
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from coldframe.config import load_settings
from coldframe.jobs.backoff import RetryPolicy
from coldframe.jobs.control import Controller
from coldframe.jobs.services import open_services
from coldframe.timing import log_line, since_ms
from coldframe_functions.jobs.events import Context, deadline_of, not_over, read_messages

_CALLS_AT_ONCE = 16


def _make_controller(environ: Mapping[str, str]) -> Controller:
    settings = load_settings(environ)
    services = open_services(settings)
    return Controller(
        services.store,
        services.objects,
        services.queue,
        services.control,
        services.notifier,
        RetryPolicy(),
        time.time,
        random.random,
        ThreadPoolExecutor(_CALLS_AT_ONCE).map,
        trace_log=print if settings.traces != "off" else None,
    )


_controller = _make_controller(os.environ)


def handler(event: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Handles messages of the control queue, or a schedule's event. Raises ValueError for any other event."""
    started_s = time.monotonic()
    if event.get("source") == "aws.events":
        facts: dict[str, object] = {"event": "jobs-sweep", "due": _controller.sweep()}
        again: list[str] = []
    else:
        messages, deadline = read_messages(event), deadline_of(context)
        again = [each.id for each in messages if not _controller.handle(each, deadline)]
        facts = {"event": "jobs-control", "messages": len(messages), "again": len(again)}
    print(log_line(**facts, duration_ms=since_ms(started_s)))
    return not_over(again)
