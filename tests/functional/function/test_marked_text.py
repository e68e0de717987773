"""A marked text through every route is in no log, metric, trace, table, bucket or queue afterwards."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from coldframe.api.operations import FEEDBACK_OPERATIONS, JOB_OPERATIONS, OPERATIONS
from coldframe.jobs.states import State
from tests.functional.function.marked_requests import SECRET, TEXT, secret_requests
from tests.support.collectors import Collector, collecting
from tests.support.running import coldframe_up
from tests.support.server_process import serving

pytestmark = pytest.mark.waits

KEYS = {"aws_access_key_id": "local", "aws_secret_access_key": "local", "region_name": "us-east-1"}
DIRECT: list[dict[str, Any]] = [
    {"external_function": "f_topic", "arguments": [[TEXT]]},
    {"external_function": SECRET, "arguments": [[TEXT]]},
    {"Items": [{"id": 0, "row": {"text": TEXT}}], "BatchInput": {"traceparent": SECRET}},
    {"Items": [{"id": 0, "row": {SECRET: TEXT}}], "BatchInput": {"text": "text"}},
    {"Items": [{"id": SECRET, "row": {SECRET: TEXT}}], "BatchInput": {"text": "text"}},
    {"Items": [{"id": 0, "row": {"text": TEXT}}], "BatchInput": {"text": SECRET}},
    {"Items": [{"id": 0, "row": TEXT}], "BatchInput": {"heads": [SECRET]}},
    {"Items": [{"id": 0, "row": TEXT}], "BatchInput": {"model": SECRET}},
    {"Items": [{"id": 0, "row": TEXT}], "BatchInput": {"version": SECRET}},
    {"source": SECRET, "text": TEXT},
]
"""Events of databases, of a Distributed Map, and one of nobody's. Lambda logs errors of refused ones."""


def check_gone(place: str, content: object) -> None:
    """Fails if the content holds the marked text, as it is or in base64."""
    text = content if isinstance(content, str) else repr(content)
    for offset in range(3):
        encoded = base64.b64encode(b"x" * offset + SECRET.encode()).decode()
        assert encoded[4:-4] not in text, place
    assert SECRET not in text, place


def send_all(url: str, headers: dict[str, str] | None = None) -> None:
    """Sends every request, each twice: the second one meets the caches."""
    with httpx.Client(base_url=url, timeout=180, trust_env=False, headers=headers) as client:
        for request in secret_requests():
            for _ in range(2):
                answer = client.request(
                    request.method, request.path, content=request.content, headers=request.headers
                )
                assert answer.status_code < 500 or answer.status_code == 503, request.path
                assert request.status in (0, answer.status_code), (request.path, answer.text)


def test_the_requests_reach_every_route_that_takes_a_text() -> None:
    operations = {**OPERATIONS, **JOB_OPERATIONS, **FEEDBACK_OPERATIONS}
    reached = {(request.method, request.pattern) for request in secret_requests()} | {("POST", "/v1/jobs")}
    taking = {route for route in operations if route[0] == "POST" and "/versions/" not in route[1]}
    assert taking <= reached


def stored(stores: str) -> Iterator[tuple[str, object]]:
    """All that lies in tables, buckets and queues."""
    dynamodb = boto3.client("dynamodb", endpoint_url=stores, **KEYS)
    for table in dynamodb.list_tables()["TableNames"]:
        yield table, dynamodb.scan(TableName=table)["Items"]
    s3 = boto3.client("s3", endpoint_url=stores, **KEYS)
    for bucket in s3.list_buckets()["Buckets"]:
        for each in s3.list_objects_v2(Bucket=bucket["Name"]).get("Contents", []):
            yield each["Key"], s3.get_object(Bucket=bucket["Name"], Key=each["Key"])["Body"].read()
    sqs = boto3.client("sqs", endpoint_url=stores, **KEYS)
    for queue in sqs.list_queues().get("QueueUrls", []):
        yield queue, sqs.receive_message(QueueUrl=queue).get("Messages", [])


def answer_job(url: str, collector: Collector) -> None:
    """Sends a job that is refused, then one that is answered; returns when the latter's trace is there."""
    with httpx.Client(base_url=url, timeout=180, trust_env=False) as client:
        assert client.post("/v1/jobs", json={"texts": [TEXT], "heads": [SECRET]}).status_code == 422
        job = client.post("/v1/jobs", json={"texts": [TEXT] * 3}).raise_for_status().json()["id"]
        assert collector.wait_for(lambda: any(span.name == "process job" for span in collector.spans))
        assert client.get(f"/v1/jobs/{job}").json()["state"] == State.DONE


def invoke_directly(url: str) -> None:
    client = boto3.client("lambda", endpoint_url=url, **KEYS)
    for event in DIRECT:
        client.invoke(FunctionName="PredictFunction", Payload=json.dumps(event).encode())


def check_traces(collector: Collector) -> None:
    assert collector.spans
    check_gone("traces", [span.SerializeToString() for span in collector.spans])
    check_gone("resources", sorted(collector.services))


def test_the_emulator_keeps_no_marked_text(bundle: Path) -> None:
    log: list[str] = []
    with collecting() as collector:
        parameters = {
            "TracesTo": collector.url,
            "Jobs": "on",
            "CachePolicy": "always",
            "FeedbackKey": "0123456789abcdef",
            "FeedbackSample": "1",
        }
        arguments = [f"--parameter={name}={value}" for name, value in parameters.items()]
        with coldframe_up("listening on", "in memory:", arguments=arguments, log=log) as (url, stores):
            send_all(url)
            invoke_directly(url)
            answer_job(url, collector)
            for place in ("/_metrics", "/_console"):
                check_gone(place, httpx.get(url + place, timeout=60).text)
            for place, content in stored(stores):
                check_gone(place, content)
            tables = [content for place, content in stored(stores) if "CacheTable" in place]
            assert any(tables)  # the cache was filled
        check_traces(collector)
    assert sum('"event":"request"' in line for line in log) > 100
    for line in log:
        check_gone("log", line)


def test_the_server_keeps_no_marked_text(bundle: Path) -> None:
    with collecting() as collector:
        environ = {
            "COLDFRAME_OTLP_ENDPOINT": collector.url,
            "COLDFRAME_METRICS_NAMESPACE": "Coldframe/test",
            "COLDFRAME_SKETCHES": "log",
        }
        with serving(bundle, **environ) as server:
            send_all(server.url)
            with server.client() as client:
                check_gone("metrics", client.get("/metrics").text)
            server.end()
            check_gone("errors", server.stderr())
        check_traces(collector)
    assert len(server.lines) > 100
    check_gone("log", json.dumps(server.lines))
