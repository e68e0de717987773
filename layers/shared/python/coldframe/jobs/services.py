"""The services of jobs on AWS, as the settings name them; boto3 is imported at the first call."""

import threading
import time
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from coldframe.config import Settings
from coldframe.jobs.aws import S3Objects, SqsQueue
from coldframe.jobs.dynamodb import DynamoStore
from coldframe.jobs.notifier import PushNotifier
from coldframe.timing import Clock

_TIMEOUT_S = 10
_CONNECTIONS = 32


class Services(Struct, frozen=True):
    """Services on AWS that jobs need."""

    store: DynamoStore
    objects: S3Objects
    queue: SqsQueue
    control: SqsQueue
    notifier: PushNotifier


def open_services(settings: Settings, now: Clock = time.time) -> Services:
    """The services. now: seconds since 1970."""
    client = Clients().of
    return Services(
        DynamoStore(settings.jobs_table, client("dynamodb"), now, settings.jobs_ttl_s),
        S3Objects(settings.jobs_bucket, settings.jobs_sources, client("s3")),
        SqsQueue(settings.jobs_queue, settings.jobs_failed_queue, client("sqs")),
        SqsQueue(settings.jobs_control_queue, settings.jobs_failed_queue, client("sqs")),
        PushNotifier(
            settings.jobs_webhook_hosts, settings.jobs_webhook_key, settings.jobs_topic, client("sns"), now
        ),
    )


class Clients:
    """boto3's clients, each created once. Safe for threads: a session is not, so a lock guards it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[str, Any] = {}

    def of(self, service: str) -> Callable[[], Any]:
        """A function that returns the client of a service."""
        return lambda: self._made.get(service) or self._make(service)

    def _make(self, service: str) -> Any:
        from boto3.session import Session
        from botocore.config import Config

        with self._lock:
            if service not in self._made:
                config = Config(
                    connect_timeout=_TIMEOUT_S,
                    read_timeout=_TIMEOUT_S,
                    max_pool_connections=_CONNECTIONS,
                    retries={"mode": "standard", "total_max_attempts": 3},
                    s3={"addressing_style": "path"},
                    # In older regions boto3 would sign by version 2, which objects under KMS refuse.
                    signature_version="s3v4" if service == "s3" else None,
                )
                self._made[service] = Session().client(service, config=config)
            return self._made[service]
