"""Bucket and queues of jobs, on S3 and SQS."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from coldframe.jobs.aws import S3Objects, SqsQueue
from coldframe.jobs.object_file import Pin
from coldframe.jobs.ports import BadSource, Unavailable
from coldframe.jobs.records import Part, read_part


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """AWS in memory, with two buckets."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        for bucket in ("ours", "theirs"):
            boto3.client("s3").create_bucket(Bucket=bucket)
        yield


def objects_of(sources: str = "theirs, more") -> S3Objects:
    return S3Objects("ours", sources, lambda: boto3.client("s3"))


def test_objects(aws: None) -> None:
    """What is put is got back, and has an address; what is not there may be there later."""
    objects = objects_of()
    objects.put("jobs/a", b"content")
    assert objects.get("jobs/a") == b"content"
    assert "jobs/a" in objects.url("jobs/a")
    with pytest.raises(Unavailable):
        objects.get("jobs/b")


def test_sources(aws: None) -> None:
    """A source is read in ranges, from buckets that are named and from uploads/, and from nowhere else."""
    for bucket, key in (("ours", "uploads/a"), ("theirs", "a"), ("ours", "jobs/secret")):
        boto3.client("s3").put_object(Bucket=bucket, Key=key, Body=b"0123456789")
    objects = objects_of()
    for uri in ("s3://ours/uploads/a", "s3://theirs/a"):
        pin = objects.pin(uri)
        assert pin.size_bytes == 10
        assert objects.read_range(uri, pin, 2, 5) == b"2345"
    assert objects_of("*").pin("s3://theirs/a") == objects.pin("s3://theirs/a")
    with pytest.raises(BadSource, match="is not in COLDFRAME_JOBS_SOURCES"):
        objects_of("*").pin("s3://ours/jobs/secret")
    for uri in ("s3://ours/jobs/secret", "s3://others/a", "s3://theirs.evil/a"):
        with pytest.raises(BadSource, match="COLDFRAME_JOBS_SOURCES"):
            objects.pin(uri)
        with pytest.raises(BadSource, match="COLDFRAME_JOBS_SOURCES"):
            objects.read_range(uri, pin, 0, 1)
    with pytest.raises(BadSource, match="404"):
        objects.pin("s3://theirs/none")


def test_a_source_that_is_changed(aws: None) -> None:
    """An object that is another one than at its pin is not read on; nor is one that was deleted."""
    s3, uri = boto3.client("s3"), "s3://theirs/a"
    s3.put_object(Bucket="theirs", Key="a", Body=b"old")
    pin = objects_of().pin(uri)
    s3.put_object(Bucket="theirs", Key="a", Body=b"new")
    with pytest.raises(BadSource, match="changed while it was read"):
        objects_of().read_range(uri, pin, 0, 2)
    s3.delete_object(Bucket="theirs", Key="a")
    with pytest.raises(BadSource, match="NoSuchKey"):
        objects_of().read_range(uri, pin, 0, 2)


def test_a_range_that_breaks_off() -> None:
    """Fewer bytes than the range has are a failure of the service, and not the source's end."""

    class Short:
        def get_object(self, **request: Any) -> Any:
            return {"Body": io.BytesIO(b"01")}

    with pytest.raises(Unavailable, match="2 bytes of 3"):
        S3Objects("a", "b", Short).read_range("s3://b/a", Pin("etag", 3), 0, 2)


def test_queue(aws: None) -> None:
    """Messages are sent in calls that SQS takes, whatever their sizes; failed ones with the reason."""
    sqs = boto3.client("sqs")
    urls = [sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("jobs", "failed")]
    queue = SqsQueue(urls[0], urls[1], lambda: sqs)
    sent = [Part("j", "g", number, 0, ["x" * 150_000]) for number in range(25)]
    queue.send(sent)
    got = []
    while messages := sqs.receive_message(QueueUrl=urls[0], MaxNumberOfMessages=10).get("Messages"):
        got += messages
    assert sorted((read_part(each["Body"]) for each in got), key=lambda part: part.part) == sent
    queue.retry_in(got[0]["ReceiptHandle"], 0)
    assert len(sqs.receive_message(QueueUrl=urls[0])["Messages"]) == 1
    queue.fail("body", "r" * 5000)
    (failed,) = sqs.receive_message(QueueUrl=urls[1], MessageAttributeNames=["All"])["Messages"]
    assert failed["MessageAttributes"]["reason"]["StringValue"] == "r" * 1000


def test_failures() -> None:
    """Whatever goes wrong is said to be unavailable."""

    class Failing:
        def __getattr__(self, name: str) -> Any:
            raise ConnectionError

    with pytest.raises(Unavailable):
        SqsQueue("a", "b", Failing).send([Part("j", "g", 0, 0)])
    with pytest.raises(Unavailable):
        S3Objects("a", "b", Failing).put("a", b"")
    with pytest.raises(Unavailable):
        S3Objects("a", "b", Failing).pin("s3://b/a")
    with pytest.raises(Unavailable):
        S3Objects("a", "b", Failing).read_range("s3://b/a", Pin("etag", 1), 0, 0)


def test_a_batch_that_is_taken_in_part() -> None:
    """A message that SQS refused is a failure of the call."""

    class Partial:
        def send_message_batch(self, **request: Any) -> Any:
            return {"Failed": [{"Id": "0", "Code": "InternalError"}]}

    with pytest.raises(Unavailable, match="InternalError"):
        SqsQueue("a", "b", Partial).send([Part("j", "g", 0, 0)])
