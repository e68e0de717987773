"""`python -m coldframe_local.emulator.stores.store_server FD`: the stores of a template, in moto's server.

A process of its own: importing moto takes half a second and its answers take turns, so in the
emulator's process both would stop the requests. It gets what to make as JSON on its standard
input, serves on the socket that it inherits, and ends when its standard input does: with the
emulator, however that ends. Until then each further line is a call to a queue, which it makes with
boto3, and each line of its standard output says what came of one.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, Literal

import boto3
import msgspec
from botocore.config import Config
from botocore.exceptions import ClientError

from coldframe_local.emulator.stores.queries import query_by_partition
from coldframe_local.emulator.stores.transactions import key_names, taking_turns, undo_by_item

_LOOPBACK = "127.0.0.1"
_REDRIVE = "RedrivePolicy"
_CALLS_AT_ONCE = 64
_EXISTS = (
    "ResourceInUseException",
    "BucketAlreadyOwnedByYou",
    "BucketAlreadyExists",
    "QueueAlreadyExists",  # with other attributes
    "QueueNameExists",
)


Clients = Callable[[str], Any]  # boto3's, by service; each is made once


class Plan(msgspec.Struct, frozen=True):
    """Resources to create, and their endpoints.

    tables: parameters of `create_table`, each with the attribute of its time to live, or None.
    queues: names and attributes. endpoints: by service; where there is none it is moto's.
    """

    region: str
    tables: list[tuple[dict[str, Any], str | None]]
    buckets: list[str]
    queues: list[tuple[str, dict[str, str]]]
    endpoints: dict[str, str]


def main() -> None:
    """Says `ready` on its standard output once everything is there, then sends what it is told."""
    plan = msgspec.json.decode(sys.stdin.buffer.readline(), type=Plan)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    serves = len(sys.argv) > 1
    if serves:
        undo_by_item()
        query_by_partition()
    # First on a socket that nobody else knows: whoever is served finds tables, buckets and queues.
    make(plan, _clients(plan, _serve(None) if serves else ""))
    clients = _clients(plan, _serve(int(sys.argv[1])) if serves else "")
    print("ready", flush=True)
    if serves or plan.queues:
        answer_calls(QueueCalls(clients("sqs")))
        os._exit(0)


def make(plan: Plan, clients: Clients) -> None:
    """Makes what is not there yet."""
    for parameters, ttl_attribute in plan.tables:
        dynamodb = clients("dynamodb")
        if _made(dynamodb.create_table, parameters) and ttl_attribute is not None:
            dynamodb.get_waiter("table_exists").wait(TableName=parameters["TableName"])
            dynamodb.update_time_to_live(
                TableName=parameters["TableName"],
                TimeToLiveSpecification={"Enabled": True, "AttributeName": ttl_attribute},
            )
    for bucket in plan.buckets:
        _made(clients("s3").create_bucket, {"Bucket": bucket} | _location(plan.region))
    for queue, attributes in plan.queues:
        own = {name: value for name, value in attributes.items() if name != _REDRIVE}
        _made(clients("sqs").create_queue, {"QueueName": queue, "Attributes": own})
    for queue, attributes in plan.queues:  # a policy names another queue, which has to be there
        if _REDRIVE in attributes:
            url = clients("sqs").get_queue_url(QueueName=queue)["QueueUrl"]
            clients("sqs").set_queue_attributes(QueueUrl=url, Attributes={_REDRIVE: attributes[_REDRIVE]})


class Call(msgspec.Struct, array_like=True):
    """A call to a queue. number: of the answer. queue: its name. parameters: of the method of QueueCalls."""

    number: int
    method: Literal["send", "receive", "delete"]
    queue: str
    parameters: dict[str, Any]


class QueueCalls:
    """Calls to queues by name. Safe for threads."""

    def __init__(self, sqs: Any) -> None:
        self._sqs = sqs
        self._urls: dict[str, str] = {}

    def send(self, queue: str, message: str) -> str:
        """Sends a message; the queue's URL."""
        self._sqs.send_message(QueueUrl=self._url(queue), MessageBody=message)
        return self._url(queue)

    def receive(self, queue: str, most: int, wait_s: int) -> list[dict[str, Any]]:
        """Up to `most` messages with all that is known of each."""
        answer = self._sqs.receive_message(
            QueueUrl=self._url(queue),
            MaxNumberOfMessages=most,
            WaitTimeSeconds=wait_s,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        return list(answer.get("Messages", []))

    def delete(self, queue: str, handles: list[str]) -> None:
        """Deletes up to ten messages."""
        entries = [{"Id": str(i), "ReceiptHandle": handle} for i, handle in enumerate(handles)]
        self._sqs.delete_message_batch(QueueUrl=self._url(queue), Entries=entries)

    def _url(self, queue: str) -> str:
        if queue not in self._urls:
            self._urls[queue] = self._sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        return self._urls[queue]


def answer_calls(queues: QueueCalls) -> None:
    """Makes each call of the standard input, a `Call` per line, until it ends.

    Answers a line each, in the order in which they end: the number, the result, and "" or what was wrong.
    """
    writing = threading.Lock()

    def answer(call: Call) -> None:
        result, error = None, ""
        try:
            result = getattr(queues, call.method)(call.queue, **call.parameters)
        except ClientError as exc:
            error = exc.response["Error"]["Code"]
        except Exception as exc:  # no answer would be waited for for ever
            error = type(exc).__name__
        line = msgspec.json.encode((call.number, result, error)).decode()
        with writing:
            print(line, flush=True)

    pool = ThreadPoolExecutor(_CALLS_AT_ONCE)
    for line in sys.stdin.buffer:
        pool.submit(answer, msgspec.json.decode(line, type=Call))
    # Nobody reads the answers any more, and one that waits for messages would keep the port for many seconds.
    pool.shutdown(wait=False, cancel_futures=True)


def _clients(plan: Plan, moto: str) -> Clients:
    """moto: where moto's server listens."""
    return cache(partial(_client, plan, moto))


def _client(plan: Plan, moto: str, service: str) -> Any:
    # Path style: a bucket's name before `127.0.0.1` is not a host.
    config = Config(
        connect_timeout=3,
        max_pool_connections=_CALLS_AT_ONCE,
        retries={"total_max_attempts": 2},
        s3={"addressing_style": "path"},
    )
    endpoint = plan.endpoints.get(service, moto)
    return boto3.client(service, endpoint_url=endpoint, region_name=plan.region, config=config)


def _made(create: Any, parameters: Mapping[str, Any]) -> bool:
    """Whether it was not there yet."""
    try:
        create(**parameters)
    except ClientError as exc:
        if exc.response["Error"]["Code"] not in _EXISTS:
            raise
        return False
    return True


def _location(region: str) -> dict[str, Any]:
    """Every region but the first has to be named to S3."""
    return {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}


def _serve(descriptor: int | None) -> str:
    """Starts moto's server in a thread; its address."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    app = taking_turns(DomainDispatcherApplication(create_backend_app), key_names)
    server = make_server(_LOOPBACK, 0, app, threaded=True, fd=descriptor)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://{_LOOPBACK}:{server.port}"


if __name__ == "__main__":
    main()
