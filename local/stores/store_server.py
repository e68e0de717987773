"""`python -m local.stores.store_server FD`: makes the stores of a template, and is one with moto's server.

A process of its own: importing moto takes half a second and its answers take turns, so in the
emulator's process both would stop the requests. It gets what to make as JSON on its standard
input, serves on the socket that it inherits, and ends when its standard input does: with the
emulator, however that ends. Until then each further line is a message for a queue, which it sends
with boto3, and each line of its standard output says what became of one.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import boto3
import msgspec
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

_LOOPBACK = "127.0.0.1"
_REDRIVE = "RedrivePolicy"
_EXISTS = (
    "ResourceInUseException",
    "BucketAlreadyOwnedByYou",
    "BucketAlreadyExists",
    "QueueAlreadyExists",  # with other attributes
    "QueueNameExists",
)


Clients = Callable[[str], Any]  # boto3's, by service; each is made once


class Plan(msgspec.Struct, frozen=True):
    """What to make, and where.

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
    # First on a socket that nobody else knows: whoever is served finds tables, buckets and queues.
    make(plan, _clients(plan, _serve(None) if serves else ""))
    clients = _clients(plan, _serve(int(sys.argv[1])) if serves else "")
    print("ready", flush=True)
    if serves or plan.queues:
        send_messages(clients("sqs"))
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


def send_messages(sqs: Any) -> None:
    """Sends each line of the standard input, the name of a queue and a message, until it ends.

    Answers a line each: the queue's URL and "", or "" and why it was not sent, without the message.
    """
    for line in sys.stdin.buffer:
        queue, message = msgspec.json.decode(line, type=tuple[str, str])
        url, error = "", ""
        try:
            url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
            sqs.send_message(QueueUrl=url, MessageBody=message)
        except ClientError as exc:
            error = exc.response["Error"]["Code"]
        except BotoCoreError as exc:
            error = type(exc).__name__
        print(msgspec.json.encode((url, error)).decode(), flush=True)


def _clients(plan: Plan, moto: str) -> Clients:
    """moto: where moto's server listens."""
    return cache(partial(_client, plan, moto))


def _client(plan: Plan, moto: str, service: str) -> Any:
    # Path style: a bucket's name before `127.0.0.1` is no host.
    config = Config(connect_timeout=3, retries={"total_max_attempts": 2}, s3={"addressing_style": "path"})
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

    app = DomainDispatcherApplication(create_backend_app)
    server = make_server(_LOOPBACK, 0, app, threaded=True, fd=descriptor)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://{_LOOPBACK}:{server.port}"


if __name__ == "__main__":
    main()
