"""The forwarder: spans in log lines of other functions, posted as OTLP to CloudWatch or to a collector.

CloudWatch Logs invokes it with lines as they are written, so that no request waits for its trace.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/SubscriptionFilters.html, read 2026-11-25
"""

import base64
import gzip
import json
import os
import random
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote

from coldframe.log_lines import plain_line
from coldframe.telemetry.otlp_json import CLOUDWATCH as LIMITS
from coldframe.telemetry.otlp_json import EncodedSpan, batches, encode_span, is_in_time, rejected_spans
from coldframe.telemetry.spans import BrokenLine, spans_of

_CLOUDWATCH = "cloudwatch"
_TRY_AGAIN = frozenset({429, 502, 503, 504})
_PATH = "/v1/traces"
_SPARED_S = 1.0  # of the invocation's time, for the log line
_LONGEST_ANSWER_S = 10.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 8.0


class Context(Protocol):
    """Attributes of Lambda's context object that the function uses."""

    def get_remaining_time_in_millis(self) -> int: ...


class Answer(NamedTuple):
    """An HTTP answer. retry_after: the header of this name; "" without one."""

    status: int
    body: bytes = b""
    retry_after: str = ""


Post = Callable[[bytes, float], Answer]
"""Posts a body, and waits for an answer for a number of seconds. Raises OSError without an answer."""

Sign = Callable[[str, bytes, dict[str, str]], Mapping[str, str]]
"""Headers of a request, by its address, body and other headers."""

_OTHER_EVENT = (
    "This event does not come from CloudWatch Logs. Invoke the function by a subscription of a log group."
)


class NotTaken(Exception):
    """The receiver takes no spans now. Lambda invokes again with the same lines."""


def handler(event: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Posts the spans in an event of CloudWatch Logs. Returns counts, and prints them as its log line.

    Raises NotTaken where a later attempt may succeed, ValueError for an event of another source.
    """
    started_s = time.monotonic()
    ends_s = started_s + context.get_remaining_time_in_millis() / 1e3 - _SPARED_S
    counts: Counter[str] = Counter()
    try:
        forward(event, _poster(), counts, lambda: ends_s - time.monotonic())
    finally:
        report = _report(counts)
        print(plain_line("traces", started_s, **report))
    return report


def forward(
    event: Mapping[str, Any],
    post: Post,
    counts: Counter[str],
    time_left_s: Callable[[], float],
    now: Callable[[], float] = time.time,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Posts the spans in an event, and adds numbers of lines and spans to `counts`.

    now: seconds since 1970. Raises NotTaken, ValueError.
    """
    record = read_record(event)
    if record.get("messageType") != "DATA_MESSAGE":  # CloudWatch checks that the function can be reached
        return
    spans = list(_encoded(record, counts, now()))
    for batch in batches(spans, _resource(record)):
        answer = _post_firmly(post, batch.body, time_left_s, pause)
        if answer.status // 100 != 2:  # another attempt would be refused, too
            counts[f"status_{answer.status}"] += 1
            counts["refused"] += batch.spans
        else:
            refused = min(rejected_spans(answer.body), batch.spans)
            counts.update({"sent": batch.spans - refused} | ({"refused": refused} if refused else {}))


def read_record(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """The lines in an event of CloudWatch Logs. Raises ValueError for anything else."""
    try:
        record = json.loads(gzip.decompress(base64.b64decode(event["awslogs"]["data"], validate=True)))
    except (KeyError, TypeError, ValueError, OSError, EOFError, zlib.error, RecursionError) as exc:
        raise ValueError(_OTHER_EVENT) from exc
    if not isinstance(record, dict):
        raise ValueError(_OTHER_EVENT)
    return record


def _encoded(record: Mapping[str, Any], counts: Counter[str], now_s: float) -> Iterator[EncodedSpan]:
    """Spans to send. A span that no receiver would take is counted instead."""
    for event in record.get("logEvents", []):
        counts["lines"] += 1
        try:
            spans = spans_of(event["message"])
        except (BrokenLine, KeyError, TypeError):
            counts["broken_lines"] += 1
            continue
        for span in spans:
            encoded = encode_span(span)
            if not is_in_time(span, now_s):
                counts["out_of_time"] += 1
            elif len(encoded.content) > LIMITS.span_bytes:
                counts["too_large"] += 1
            else:
                yield encoded


def _resource(record: Mapping[str, Any]) -> dict[str, str | int | bool]:
    """Attributes of the environment that wrote the lines."""
    return {
        "service.name": os.environ.get("OTEL_SERVICE_NAME", "coldframe"),
        "cloud.provider": "aws",
        "cloud.platform": "aws_lambda",
        "cloud.region": os.environ.get("AWS_REGION", ""),
        "cloud.account.id": str(record.get("owner", "")),
        "faas.name": str(record.get("logGroup", "")).rpartition("/")[2],
        "faas.instance": str(record.get("logStream", "")),
    }


def _post_firmly(
    post: Post, body: bytes, time_left_s: Callable[[], float], pause: Callable[[float], None]
) -> Answer:
    """The answer of a receiver that decides. Waits as long as the receiver says, if there is time for it."""
    pause_s = _FIRST_PAUSE_S
    while True:
        reason, wait_s = "no answer", 0.0
        try:
            answer = post(body, max(0.1, min(_LONGEST_ANSWER_S, time_left_s())))
        except OSError as exc:
            reason = type(exc).__name__
        else:
            if answer.status not in _TRY_AGAIN:
                return answer
            reason, wait_s = f"status {answer.status}", _retry_after_s(answer.retry_after)
        wait_s = wait_s or pause_s * random.uniform(0.5, 1.0)
        if wait_s >= time_left_s():
            raise NotTaken(f"The receiver of traces gives {reason}. Check that it runs and has room.")
        pause(wait_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _retry_after_s(header: str) -> float:
    """Seconds to wait; 0 where the header names none, or is malformed."""
    from urllib3 import Retry
    from urllib3.exceptions import InvalidHeader

    try:
        return max(0.0, Retry().parse_retry_after(header)) if header else 0.0
    except (InvalidHeader, OverflowError):
        return 0.0


def _report(counts: Counter[str]) -> dict[str, Any]:
    """Fields of the log line: counts, and lost spans as a metric of CloudWatch where there are any."""
    report: dict[str, Any] = dict(counts)
    lost = sum(counts[reason] for reason in ("refused", "out_of_time", "too_large", "broken_lines"))
    if lost and (namespace := os.environ.get("METRICS_NAMESPACE")):
        report["spans_lost"] = lost
        metric = {"Name": "spans_lost", "Unit": "Count"}
        directive = {"Namespace": namespace, "Dimensions": [[]], "Metrics": [metric]}
        report["_aws"] = {"Timestamp": int(time.time() * 1e3), "CloudWatchMetrics": [directive]}
    return report


@cache
def _poster() -> Post:
    """The way to the receiver that the environment names."""
    import urllib3

    receiver = os.environ["TRACES_TO"]
    pool = urllib3.PoolManager(retries=False)
    sign: Sign = _unsigned
    if receiver == _CLOUDWATCH:
        receiver, sign = _cloudwatch()
    url = receiver.rstrip("/") + _PATH

    def post(body: bytes, limit_s: float) -> Answer:
        packed = gzip.compress(body, compresslevel=1)
        headers = {"content-type": "application/json", "content-encoding": "gzip"}
        try:
            answer = pool.request(
                "POST",
                url,
                body=packed,
                headers=sign(url, packed, headers),
                timeout=limit_s,
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as exc:
            raise OSError(type(exc).__name__) from exc
        return Answer(answer.status, answer.data, answer.headers.get("retry-after", ""))

    return post


def _unsigned(url: str, body: bytes, headers: dict[str, str]) -> Mapping[str, str]:
    return read_headers(os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")) | headers


def read_headers(text: str) -> dict[str, str]:
    """Headers in OpenTelemetry's form: `name=value`, separated by commas, values percent-encoded.

    https://opentelemetry.io/docs/specs/otel/protocol/exporter/#specifying-headers-via-environment-variables
    """
    pairs: Sequence[tuple[str, str, str]] = [pair.partition("=") for pair in text.split(",")]
    return {name.strip().lower(): unquote(value.strip()) for name, _, value in pairs if name.strip()}


def _cloudwatch() -> tuple[str, Sign]:
    """CloudWatch's address for traces in this region, and the signature that it wants."""
    import boto3
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest

    session = boto3.Session()
    client = session.client("xray")

    def sign(url: str, body: bytes, headers: dict[str, str]) -> Mapping[str, str]:
        request = AWSRequest("POST", url, headers=headers, data=body)
        SigV4Auth(session.get_credentials(), "xray", client.meta.region_name).add_auth(request)
        return dict(request.headers.items())

    return client.meta.endpoint_url, sign
