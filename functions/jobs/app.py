"""The jobs function: a batch of SQS messages in, those that are to be received again out.

Importing this module is the init phase, in which everything is loaded: nobody waits for this function.
"""

import json
import os
import random
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from coldframe.config import load_settings
from coldframe.jobs.backoff import RetryPolicy
from coldframe.jobs.services import open_services
from coldframe.jobs.worker import Message, Worker
from coldframe.pipeline.models import load_models
from coldframe.timing import Deadline
from functions.jobs.answering import ModelAnswerer

_CALLS_AT_ONCE = 16
# Kept of the function's timeout for recording what was answered.
_KEPT_S, _KEPT_SHARE = 10.0, 0.3


class Context(Protocol):
    """What we use of Lambda's context object."""

    def get_remaining_time_in_millis(self) -> int: ...


def _make_worker(environ: Mapping[str, str]) -> Worker:
    settings = load_settings(environ)
    models = load_models(settings)
    models.default.model.get()
    services = open_services(settings)
    return Worker(
        services.store,
        services.objects,
        services.queue,
        services.pusher,
        ModelAnswerer(models),
        RetryPolicy(),
        time.time,
        random.random,
        ThreadPoolExecutor(_CALLS_AT_ONCE).map,
    )


_worker = _make_worker(os.environ)


def handler(event: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Works off a batch. Raises ValueError for an event that is none of SQS."""
    messages = [read_message(record) for record in event.get("Records", [])]
    if not messages:
        raise ValueError("This event has no SQS messages. Send jobs to the queue with POST /v1/jobs.")
    started_s = time.monotonic()
    left_s = context.get_remaining_time_in_millis() / 1e3
    again = _worker.handle(messages, Deadline(left_s - min(_KEPT_S, _KEPT_SHARE * left_s)))
    line = {"event": "jobs", "messages": len(messages), "again": len(again)}
    print(json.dumps(line | {"ms": round((time.monotonic() - started_s) * 1e3, 1)}))
    return {"batchItemFailures": [{"itemIdentifier": each} for each in again]}


def read_message(record: Mapping[str, Any]) -> Message:
    """A message of Lambda's event."""
    attributes = record["attributes"]
    return Message(
        id=record["messageId"],
        receipt_handle=record["receiptHandle"],
        body=record["body"],
        received=int(attributes["ApproximateReceiveCount"]),
        sent_s=int(attributes["SentTimestamp"]) / 1e3,
    )
