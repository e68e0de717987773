"""The function that answers parts of jobs: a batch of SQS messages in, messages to receive again out.

Importing this module is the init phase, in which everything is loaded: no caller waits for this function.
"""

import os
import random
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from coldframe.config import Settings, load_settings
from coldframe.jobs.backoff import RetryPolicy
from coldframe.jobs.services import open_services
from coldframe.jobs.worker import Worker
from coldframe.pipeline.models import Models, SketchLog, load_models
from coldframe.timing import log_line, since_ms
from coldframe_functions.jobs.answering import ModelAnswerer
from coldframe_functions.jobs.events import Context, deadline_of, not_over, read_messages

_CALLS_AT_ONCE = 16


def _make_worker(settings: Settings, models: Models) -> Worker:
    services = open_services(settings)
    return Worker(
        services.store,
        services.objects,
        services.queue,
        services.control,
        ModelAnswerer(models),
        RetryPolicy(),
        random.random,
        ThreadPoolExecutor(_CALLS_AT_ONCE).map,
        trace_log=print if settings.traces != "off" else None,
    )


_settings = load_settings(os.environ)
_models = load_models(_settings)
_worker = _make_worker(_settings, _models)
_sketches = SketchLog(_models) if _settings.sketches != "off" else None


def handler(event: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Answers a batch. Raises ValueError for an event that does not come from SQS."""
    for sketch in _sketches.lines() if _sketches is not None else ():
        print(sketch)
    messages = read_messages(event)
    started_s = time.monotonic()
    again = _worker.handle(messages, deadline_of(context))
    facts = {"messages": len(messages), "again": len(again)}
    print(log_line(event="jobs", **facts, duration_ms=since_ms(started_s)))
    return not_over(again)
