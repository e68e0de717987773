"""The S3 bucket of the cache: values that are too large for an item of the table."""

from typing import Any

from coldframe.cache.aws_clients import GARBAGE, OUT_OF_TIME, AwsClients, Failure, failure_of
from coldframe.timing import Deadline

FOLDER = "values/"


class S3Store:
    """One object per key. Never raises for errors of the service or the network."""

    def __init__(self, bucket: str, clients: AwsClients) -> None:
        self._bucket = bucket
        self._clients = clients

    def get(self, key: bytes, size_bytes: int, deadline: Deadline) -> bytes | Failure:
        """The object of `key`, which has `size_bytes`: no more bytes are read."""

        def read(client: Any) -> bytes | Failure:
            reply = client.get_object(Bucket=self._bucket, Key=_name(key))
            if reply["ContentLength"] != size_bytes:
                return GARBAGE
            content: bytes = reply["Body"].read()
            return content

        return self._call(read, deadline)

    def put(self, key: bytes, value: bytes, deadline: Deadline) -> Failure | None:
        """Writes the object of `key`."""

        def write(client: Any) -> bytes:
            client.put_object(Bucket=self._bucket, Key=_name(key), Body=value)
            return b""

        outcome = self._call(write, deadline)
        return outcome if isinstance(outcome, Failure) else None

    def _call(self, call: Any, deadline: Deadline) -> bytes | Failure:
        try:
            client = self._clients.get("s3")
            from coldframe.cache.deadline_http import deadline_of_calls

            if deadline.remaining_s() <= 0:
                return OUT_OF_TIME
            with deadline_of_calls(deadline):
                outcome: bytes | Failure = call(client)
                return outcome
        except Exception as exc:  # any error of boto3 or the network is a miss
            return failure_of(exc)


def _name(key: bytes) -> str:
    return FOLDER + key.hex()
