"""The forwarder in the emulator: real log lines, a real subscription, a real receiver."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import httpx
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.conftest import ROOT
from tests.support.collectors import Collector, collecting
from tests.support.running import coldframe_up, shell_environ

pytestmark = pytest.mark.waits

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
RUN = "5759e988bd862e3fe1be46a994272793"
SECRET = "The goalie zyxwv-secret-4711"
KEYS = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
HEADERS = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
BODY = {"text": "The goalie made forty saves", "heads": ["logreg"], "cache": False}
INVOKE = """
import time
from datetime import datetime, UTC
from types import SimpleNamespace
from coldframe_functions.traces.app import handler
from tests.support.collectors import logs_event, request_line
line = request_line(time=datetime.now(UTC).isoformat())
handler(logs_event(line), SimpleNamespace(get_remaining_time_in_millis=lambda: 30_000))
"""
STAGES = {"cache", "tokenize", "estimate", "encode", "heads"}


@pytest.fixture
def collector(bundle: Path) -> Iterator[Collector]:
    with collecting() as receiver:
        yield receiver


def predict(url: str, headers: dict[str, str] = HEADERS) -> httpx.Response:
    answer = httpx.post(f"{url}/v1/predict", json=BODY, headers=headers, timeout=120)
    assert answer.status_code == 200
    return answer


def test_a_request_s_trace_reaches_a_collector_by_the_log(collector: Collector) -> None:
    collector.statuses = [503]  # the forwarder tries again
    arguments = [
        f"--parameter=TracesTo={collector.url}/",
        "--parameter=TracesHeaders=authorization=Bearer%20x",
    ]
    with coldframe_up("listening on", arguments=arguments) as (url,):
        predict(url, {"traceparent": HEADERS["traceparent"][:-1] + "0"})  # unsampled: nothing to forward
        returned = predict(url).headers["traceparent"]
        assert collector.wait_for(lambda: len(collector.spans) >= 1 + len(STAGES))
    by_name = {span.name: span for span in collector.spans}
    request = by_name.pop("POST /v1/predict")
    assert by_name.keys() == STAGES
    assert {span.trace_id.hex() for span in collector.spans} == {TRACE}
    assert request.parent_span_id.hex() == PARENT
    assert returned == f"00-{TRACE}-{request.span_id.hex()}-01"
    assert {headers["authorization"] for headers in collector.headers} == {"Bearer x"}
    assert set(collector.paths) == {"/v1/traces"}


def spans_named(collector: Collector, name: str) -> list[Span]:
    return [span for span in collector.spans if span.name == name]


def test_jobs_and_offline_runs_keep_the_trace_of_whoever_started_them(
    collector: Collector, tmp_path: Path
) -> None:
    """Their spans are in the caller's trace, below the request or the run, and hold no text."""
    arguments = [f"--parameter=TracesTo={collector.url}", "--parameter=Jobs=on"]
    with coldframe_up("listening on", "in memory:", arguments=arguments) as (url, stores):
        answer = httpx.post(f"{url}/v1/jobs", json={"texts": [SECRET, "a"]}, headers=HEADERS, timeout=120)
        assert answer.status_code == 202
        request_id = answer.headers["traceparent"].split("-")[2]
        assert collector.wait_for(lambda: bool(spans_named(collector, "process job")))
        [work] = spans_named(collector, "process job")
        assert (work.trace_id.hex(), work.parent_span_id.hex()) == (TRACE, request_id)
        assert {"answer", "record"} <= {span.name for span in collector.spans}

        s3 = boto3.client("s3", endpoint_url=stores, region_name="us-east-1", **KEYS)
        s3.create_bucket(Bucket="texts")
        s3.put_object(Bucket="texts", Key="in.jsonl", Body=json.dumps({"text": SECRET}).encode())
        start = [
            "offline",
            "start",
            "s3://texts/in.jsonl",
            "--out",
            "s3://texts/out",
            "--yes",
            "--no-estimate",
        ]
        here = ["--local", url, "--s3-endpoint", stores, "--journals", str(tmp_path)]
        command = [str(Path(sys.executable).parent / "coldframe"), *start, *here]
        environ = shell_environ() | {"TRACEPARENT": f"00-{RUN}-{PARENT}-01"}
        done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120)
        assert f"trace {RUN}\n" in done.stdout, done.stderr
        assert collector.wait_for(lambda: any(span.trace_id.hex() == RUN for span in collector.spans))
    [batch] = [span for span in spans_named(collector, "POST /v1/predict") if span.trace_id.hex() == RUN]
    assert batch.parent_span_id.hex() == PARENT
    assert not any(SECRET.encode() in span.SerializeToString() for span in collector.spans)


def test_requests_to_cloudwatch_are_signed(collector: Collector) -> None:
    """The forwarder as a process, with X-Ray's address changed by the variable that botocore reads."""
    environ = {
        "TRACES_TO": "cloudwatch",
        "AWS_ENDPOINT_URL_XRAY": collector.url,
        "AWS_REGION": "eu-central-1",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "token",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-not-for-aws=1",
    }
    subprocess.run([sys.executable, "-c", INVOKE], env=os.environ | environ, cwd=ROOT, check=True, timeout=60)
    [headers] = collector.headers
    assert re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/\d{8}/eu-central-1/xray/aws4_request,"
        r" SignedHeaders=[a-z0-9;-]*host;x-amz-date;x-amz-security-token, Signature=[0-9a-f]{64}",
        headers["authorization"],
    )
    assert headers["x-amz-security-token"] == "token"
    assert "x-not-for-aws" not in headers
    assert len(collector.spans) == 3
    assert collector.paths == ["/v1/traces"]
