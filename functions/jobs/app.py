"""The function that answers parts of jobs: a batch of SQS messages in, messages to receive again out.

Importing this module is the init phase, in which everything is loaded: no caller waits for this function.
"""

import json
import os
import random
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from coldframe.config import load_settings
from coldframe.jobs.backoff import RetryPolicy
from coldframe.jobs.services import open_services
from coldframe.jobs.worker import Worker
from coldframe.pipeline.models import load_models
from functions.jobs.answering import ModelAnswerer
from functions.jobs.events import Context, deadline_of, not_over, read_messages

_CALLS_AT_ONCE = 16


def _make_worker(environ: Mapping[str, str]) -> Worker:
    settings = load_settings(environ)
    models = load_models(settings)
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
    )


_worker = _make_worker(os.environ)


def handler(event: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Answers a batch. Raises ValueError for an event that does not come from SQS."""
    messages = read_messages(event)
    started_s = time.monotonic()
    again = _worker.handle(messages, deadline_of(context))
    line = {"event": "jobs", "messages": len(messages), "again": len(again)}
    print(json.dumps(line | {"ms": round((time.monotonic() - started_s) * 1e3, 1)}))
    return not_over(again)
