"""The bucket and the queues of jobs, on S3 and SQS."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from coldframe.jobs.object_file import Pin
from coldframe.jobs.ports import BadSource, Unavailable
from coldframe.jobs.records import Body

_MESSAGES_OF_A_CALL = 10
_CALL_BYTES = 1_000_000  # per SendMessageBatch: 1 MiB less envelopes
_URL_S = 3600
_CODES_OF_A_BAD_SOURCE = (
    "NoSuchKey",
    "NoSuchBucket",
    "AccessDenied",
    "404",
    "403",
    "InvalidBucketName",
)
_CODE_OF_ANOTHER_ETAG = "PreconditionFailed"
_REASON_CHARACTERS = 1000

Client = Callable[[], Any]
"""boto3's client, created at its first use."""


class S3Objects:
    """Objects of the deployment's bucket and of buckets for sources. Safe for threads.

    sources: names of buckets that callers may use, separated by commas; `*`: all buckets except the
    deployment's.
    In the deployment's bucket, callers may use keys below `uploads/`.
    """

    def __init__(self, bucket: str, sources: str, client: Client) -> None:
        self._bucket = bucket
        self._sources = frozenset(filter(None, (each.strip() for each in sources.split(","))))
        self._client = client

    def put(self, key: str, content: bytes) -> None:
        self._call("put_object", Bucket=self._bucket, Key=key, Body=content)

    def get(self, key: str) -> bytes:
        try:
            return bytes(self._call("get_object", Bucket=self._bucket, Key=key)["Body"].read())
        except Unavailable:
            raise
        except Exception as exc:  # the body ended early
            raise Unavailable(type(exc).__name__) from exc

    def _place(self, uri: str) -> dict[str, str]:
        """Bucket and key of a source. Raises BadSource for one that may not be read."""
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        is_ours = bucket == self._bucket
        if (is_ours and key.startswith("uploads/")) or (not is_ours and self._sources & {bucket, "*"}):
            return {"Bucket": bucket, "Key": key}
        raise BadSource("the source's bucket is not in COLDFRAME_JOBS_SOURCES. Add it there to allow it")

    def pin(self, uri: str) -> Pin:
        place = self._place(uri)
        with _reading_source():
            head = self._client().head_object(**place)
        return Pin(head["ETag"], head["ContentLength"])

    def read_range(self, uri: str, pin: Pin, first: int, last: int) -> bytes:
        """No version is named, which would need one more permission on callers' buckets: the ETag
        suffices.
        """
        place = self._place(uri)
        with _reading_source():
            request = {"Range": f"bytes={first}-{last}", "IfMatch": pin.etag}
            content = bytes(self._client().get_object(**place, **request)["Body"].read())
        if len(content) != last - first + 1:
            raise Unavailable(f"{len(content)} bytes of {last - first + 1}")
        return content

    def url(self, key: str) -> str:
        """Address where an object can be fetched for an hour, or until the credentials expire."""
        request = {"Bucket": self._bucket, "Key": key}
        return str(self._client().generate_presigned_url("get_object", Params=request, ExpiresIn=_URL_S))

    def _call(self, method: str, **request: Any) -> Any:
        try:
            return getattr(self._client(), method)(**request)
        except Exception as exc:  # any error of boto3 or the network
            raise Unavailable(type(exc).__name__) from exc


@contextmanager
def _reading_source() -> Iterator[None]:
    """Classifies an error of a read: the source's fault, or a failure that may pass."""
    try:
        yield
    except Exception as exc:  # any error of boto3 or the network
        code = getattr(exc, "response", {}).get("Error", {}).get("Code", type(exc).__name__)
        if code == _CODE_OF_ANOTHER_ETAG:
            raise BadSource("the source was changed while it was read. Send a new request for it") from exc
        if code in _CODES_OF_A_BAD_SOURCE:
            raise BadSource(f"the source cannot be read: {code}") from exc
        raise Unavailable(code) from exc


class SqsQueue:
    """The queue of jobs, and the one of failed messages. Both are URLs. Safe for threads."""

    def __init__(self, url: str, failed_url: str, client: Client) -> None:
        self._url = url
        self._failed_url = failed_url
        self._client = client

    def send(self, bodies: Sequence[Body]) -> None:
        lot: list[str] = []
        size = 0
        for body in bodies:
            text = msgspec.json.encode(body).decode()
            bytes_ = len(text.encode())
            if lot and (len(lot) == _MESSAGES_OF_A_CALL or size + bytes_ > _CALL_BYTES):
                self._send(lot)
                lot, size = [], 0
            lot.append(text)
            size += bytes_
        if lot:
            self._send(lot)

    def _send(self, bodies: Sequence[str]) -> None:
        entries = [{"Id": str(i), "MessageBody": body} for i, body in enumerate(bodies)]
        answer = self._call("send_message_batch", QueueUrl=self._url, Entries=entries)
        if answer.get("Failed"):
            raise Unavailable(str(answer["Failed"][0].get("Code", "SendMessageBatch")))

    def retry_in(self, receipt_handle: str, delay_s: int) -> None:
        self._call(
            "change_message_visibility",
            QueueUrl=self._url,
            ReceiptHandle=receipt_handle,
            VisibilityTimeout=delay_s,
        )

    def fail(self, body: str, reason: str) -> None:
        attribute = {"DataType": "String", "StringValue": reason[:_REASON_CHARACTERS] or "unknown"}
        self._call(
            "send_message",
            QueueUrl=self._failed_url,
            MessageBody=body,
            MessageAttributes={"reason": attribute},
        )

    def _call(self, method: str, **request: Any) -> Any:
        try:
            return getattr(self._client(), method)(**request)
        except Exception as exc:  # any error of boto3 or the network
            raise Unavailable(type(exc).__name__) from exc
