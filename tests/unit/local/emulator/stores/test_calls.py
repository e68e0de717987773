"""Calls to queues, as they come down the standard input of the stores' process."""

import io
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from coldframe_local.emulator.stores.store_server import QueueCalls, answer_calls


class Waiting:
    """SQS whose reads wait for messages until the test lets them go."""

    def __init__(self) -> None:
        self.reads, self.lets_go = threading.Event(), threading.Event()

    def get_queue_url(self, **_: Any) -> dict[str, str]:
        """As boto3's."""
        return {"QueueUrl": "a-url"}

    def receive_message(self, **_: Any) -> dict[str, Any]:
        """As boto3's, with a long poll."""
        self.reads.set()
        self.lets_go.wait()
        return {}


@pytest.fixture
def sqs() -> Iterator[Waiting]:
    """Let go after the test."""
    waiting = Waiting()
    yield waiting
    waiting.lets_go.set()


def test_a_long_poll_does_not_keep_the_process(sqs: Waiting, monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator is gone, a read still waits for messages: the calls end, and the process can."""
    call = msgspec.json.encode((1, "receive", "a-queue", {"most": 10, "wait_s": 20})) + b"\n"

    def lines() -> Iterator[bytes]:
        yield call
        sqs.reads.wait()  # then the standard input ends

    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=lines()))
    monkeypatch.setattr("sys.stdout", io.StringIO())
    answer_calls(QueueCalls(sqs))
    assert not sqs.lets_go.is_set()
