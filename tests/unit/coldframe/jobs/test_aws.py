"""Bucket and queues of jobs, on S3 and SQS."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from coldframe.jobs.aws import S3Objects, SqsQueue
from coldframe.jobs.ports import BadSource, Unavailable
from coldframe.jobs.records import Part, read_body


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
    """A source is read line by line, from buckets that are named and from uploads/, and from nowhere else."""
    for bucket, key in (("ours", "uploads/a"), ("theirs", "a"), ("ours", "jobs/secret")):
        boto3.client("s3").put_object(Bucket=bucket, Key=key, Body="\ufeffeins\nzwei\u2028ß".encode())
    objects = objects_of()
    for uri in ("s3://ours/uploads/a", "s3://theirs/a"):
        assert "".join(objects.lines(uri)) == "eins\nzwei\u2028ß"
    for uri in ("s3://ours/jobs/secret", "s3://others/a", "s3://theirs.evil/a"):
        with pytest.raises(BadSource, match="COLDFRAME_JOBS_SOURCES"):
            list(objects.lines(uri))
    with pytest.raises(BadSource, match="NoSuchKey"):
        list(objects.lines("s3://theirs/none"))


def test_a_source_that_is_read_from_anywhere(aws: None) -> None:
    """Ranges of an object, as a file; a source that has changed meanwhile is not read on."""
    s3 = boto3.client("s3")
    content = bytes(range(256)) * 20
    s3.put_object(Bucket="theirs", Key="a", Body=content)
    file = objects_of().open("s3://theirs/a")
    assert file.seek(-6, io.SEEK_END) == len(content) - 6
    assert (file.read(4), file.read()) == (content[-6:-2], content[-2:])
    assert file.read(1) == b""
    assert file.seek(0) == 0 and file.read() == content
    with pytest.raises(BadSource, match="COLDFRAME_JOBS_SOURCES"):
        objects_of().open("s3://others/a")
    with pytest.raises(BadSource, match="404"):
        objects_of().open("s3://theirs/none")
    s3.put_object(Bucket="theirs", Key="a", Body=b"other")
    file.seek(0)
    with pytest.raises(BadSource, match="PreconditionFailed"):
        file.read(1)


def test_sources_that_are_no_text(aws: None) -> None:
    """Bytes that are not UTF-8 are said to be none."""
    boto3.client("s3").put_object(Bucket="theirs", Key="a", Body=b"a\n\xff\n")
    with pytest.raises(BadSource, match="UTF-8"):
        list(objects_of().lines("s3://theirs/a"))


def test_queue(aws: None) -> None:
    """Messages are sent in calls that SQS takes, whatever their sizes; failed ones with the reason."""
    sqs = boto3.client("sqs")
    urls = [sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("jobs", "failed")]
    queue = SqsQueue(urls[0], urls[1], lambda: sqs)
    sent = [Part("j", number, 0, ["x" * 150_000]) for number in range(25)]
    queue.send(sent)
    got = []
    while messages := sqs.receive_message(QueueUrl=urls[0], MaxNumberOfMessages=10).get("Messages"):
        got += messages
    assert sorted((read_body(each["Body"]) for each in got), key=lambda part: part.part) == sent  # type: ignore[union-attr]
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
        SqsQueue("a", "b", Failing).send([Part("j", 0, 0)])
    with pytest.raises(Unavailable):
        S3Objects("a", "b", Failing).put("a", b"")
    with pytest.raises(Unavailable):
        list(S3Objects("a", "b", Failing).lines("s3://b/a"))
    with pytest.raises(Unavailable):
        S3Objects("a", "b", Failing).open("s3://b/a")


def test_a_batch_that_is_taken_in_part() -> None:
    """A message that SQS refused is a failure of the call."""

    class Partial:
        def send_message_batch(self, **request: Any) -> Any:
            return {"Failed": [{"Id": "0", "Code": "InternalError"}]}

    with pytest.raises(Unavailable, match="InternalError"):
        SqsQueue("a", "b", Partial).send([Part("j", 0, 0)])
