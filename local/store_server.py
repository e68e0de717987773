"""`python -m local.store_server FD`: makes the stores of a template, and is one with moto's server.

A process of its own: importing moto takes half a second and its answers take turns, so in the
emulator's process both would stop the requests. It gets what to make as JSON on its standard
input, serves on the socket that it inherits, and ends when its standard input does: with the
emulator, however that ends.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any

import boto3
import msgspec
from botocore.config import Config
from botocore.exceptions import ClientError

_LOOPBACK = "127.0.0.1"
_EXISTS = ("ResourceInUseException", "BucketAlreadyOwnedByYou", "BucketAlreadyExists")


class Plan(msgspec.Struct, frozen=True):
    """What to make, and where. An endpoint that is None is moto's.

    tables: parameters of `create_table`, each with the attribute of its time to live, or None.
    """

    region: str
    tables: list[tuple[dict[str, Any], str | None]]
    buckets: list[str]
    dynamodb_endpoint: str | None = None
    s3_endpoint: str | None = None


def main() -> None:
    """Says `ready` on its standard output once everything is there."""
    plan = msgspec.json.decode(sys.stdin.buffer.readline(), type=Plan)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    serves = plan.dynamodb_endpoint is None or plan.s3_endpoint is None
    if serves:
        # First on a socket that nobody else knows: whoever is served finds tables and buckets.
        own = _serve(None)
        make(plan, own)
        _serve(int(sys.argv[1]))
    else:
        make(plan, "")
    print("ready", flush=True)
    if serves:
        sys.stdin.buffer.read()
        os._exit(0)


def make(plan: Plan, moto: str) -> None:
    """Makes the tables and buckets that are not there yet. moto: where moto's server listens."""
    dynamodb = _client("dynamodb", plan.dynamodb_endpoint or moto, plan.region)
    for parameters, ttl_attribute in plan.tables:
        if _made(dynamodb.create_table, parameters) and ttl_attribute is not None:
            dynamodb.get_waiter("table_exists").wait(TableName=parameters["TableName"])
            dynamodb.update_time_to_live(
                TableName=parameters["TableName"],
                TimeToLiveSpecification={"Enabled": True, "AttributeName": ttl_attribute},
            )
    s3 = _client("s3", plan.s3_endpoint or moto, plan.region)
    for bucket in plan.buckets:
        _made(s3.create_bucket, {"Bucket": bucket} | _location(plan.region))


def _client(service: str, endpoint: str, region: str) -> Any:
    # Path style: a bucket's name before `127.0.0.1` is no host.
    config = Config(connect_timeout=3, retries={"total_max_attempts": 2}, s3={"addressing_style": "path"})
    return boto3.client(service, endpoint_url=endpoint, region_name=region, config=config)


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
