"""Who is told that a job has ended, and who is never called."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import socket
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from coldframe.jobs.notifier import Breaker, PushNotifier, sign
from coldframe.jobs.ports import BadSource, Unavailable
from coldframe.jobs.records import Job, Options, Push
from coldframe.jobs.states import State

SECRET = "whsec_" + base64.b64encode(b"key").decode()


def job(**push: Any) -> Job:
    return Job(
        "j", "g", "d", State.DONE, Options(), 0.0, 1e9, push=Push(**push), parts=1, done=frozenset({0})
    )


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1", "64:ff9b::7f00:1", "2002:7f00:1::"],
)
def test_private_addresses(address: str) -> None:
    """A name that leads into a private network, one of several addresses even, is not called."""

    def resolve(host: str, port: int) -> Sequence[str]:
        return ["93.184.216.34", address]

    notifier = PushNotifier("example.com", SECRET, "", lambda: None, lambda: 0.0, resolve)
    with pytest.raises(BadSource, match="not public"):
        notifier.notify(job(webhook="https://example.com/"))


class Receiver(HTTPServer):
    """Notes what it is told. status: what it answers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, Any, bytes]] = []
        self.status = 204

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append((self.path, self.headers, body))
        self.send_response(self.server.status)
        self.send_header("location", "http://169.254.169.254/")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *values: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Somebody's webhook."""
    with Receiver() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def pusher_of(receiver: Receiver) -> PushNotifier:
    return PushNotifier(receiver.url, SECRET, "", lambda: None, lambda: 1_700_000_000.5)


def test_webhook(receiver: Receiver) -> None:
    """A webhook gets a message that Standard Webhooks can verify, without a text."""
    pusher_of(receiver).notify(job(webhook=f"{receiver.url}/hook?a=b"))
    ((path, headers, body),) = receiver.requests
    assert path == "/hook?a=b"
    assert json.loads(body) == {
        "type": "job.done",
        "data": {"id": "j", "state": "done", "parts": 1, "done": 1, "reason": ""},
    }
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == ("j.g.done", "1700000000")
    signed = b"j.g.done.1700000000." + body
    expected = base64.b64encode(hmac.new(b"key", signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"


def test_the_example_of_the_specification() -> None:
    """The signature is that of Standard Webhooks' own example."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    found = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    ("status", "error"), [(302, BadSource), (404, BadSource), (429, Unavailable), (503, Unavailable)]
)
def test_answers(receiver: Receiver, status: int, error: type[Exception]) -> None:
    """A redirect is not followed; what may pass is tried again, all else is not."""
    receiver.status = status
    with pytest.raises(error):
        pusher_of(receiver).notify(job(webhook=f"{receiver.url}/"))
    assert len(receiver.requests) == 1


def test_nobody_listens() -> None:
    """A connection that fails is tried again; without a key nobody is called."""
    notifier = PushNotifier("http://127.0.0.1:9", SECRET, "", lambda: None, lambda: 0.0)
    with pytest.raises(Unavailable):
        notifier.notify(job(webhook="http://127.0.0.1:9/"))
    with pytest.raises(BadSource, match="sign webhooks"):
        PushNotifier("http://127.0.0.1:9", "", "", lambda: None, lambda: 0.0).notify(
            job(webhook="http://127.0.0.1:9/")
        )
    with pytest.raises(BadSource, match="base64"):
        sign("whsec_?", "a", 1, b"")


class Dripping:
    """A webhook that answers one header byte at a time, a second of its clock each, and never ends."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.calls = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)

    def clock(self) -> float:
        return self.now_s

    def __enter__(self) -> Dripping:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                called, _ = self._server.accept()
                self.calls += 1
                with called, contextlib.suppress(OSError):
                    called.recv(65536)
                    called.sendall(b"HTTP/1.1 200 OK\r\nx-a: ")
                    while True:
                        self.now_s += 1.0
                        called.sendall(b"x")


def test_a_dripping_webhook() -> None:
    """A webhook whose bytes never stop has ten seconds in all."""
    with Dripping() as dripping:
        notifier = PushNotifier(dripping.url, SECRET, "", lambda: None, lambda: 0.0, clock=dripping.clock)
        with pytest.raises(Unavailable, match="TimeoutError"):
            notifier.notify(job(webhook=f"{dripping.url}/"))
        assert dripping.calls == 1


def test_a_dead_host_is_left_alone() -> None:
    """Ninety notifications to a host that was not reached are one call; a minute later there is another."""
    now_s, asked = [0.0], []

    def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        raise TimeoutError if host == "dead.com" else ConnectionRefusedError

    notifier = PushNotifier(
        "dead.com, other.com", SECRET, "", lambda: None, lambda: 0.0, resolve, lambda: now_s[0]
    )
    for now_s[0] in (0.0, 59.0, 61.0):
        for _ in range(90):
            with pytest.raises(Unavailable):
                notifier.notify(job(webhook="https://dead.com/"))
    assert asked == ["dead.com", "dead.com"]
    with pytest.raises(Unavailable, match="ConnectionRefusedError"):
        notifier.notify(job(webhook="https://other.com/"))


def test_a_host_that_is_back() -> None:
    """A call that succeeds closes the breaker: the next failure is called again."""
    now_s = 0.0
    breaker = Breaker(lambda: now_s)
    with pytest.raises(Unavailable, match="ConnectionResetError"), breaker.calling("a"):
        raise ConnectionResetError
    with pytest.raises(Unavailable, match="a moment ago"), breaker.calling("a"):
        pass
    now_s = 60.0
    for _ in range(2):
        with breaker.calling("a"):
            pass


def test_topic() -> None:
    """A topic gets the same message; without one nobody can be told."""
    published: list[Any] = []

    class Sns:
        def publish(self, **request: Any) -> None:
            published.append(request)

    PushNotifier("", "", "arn:topic", Sns, lambda: 0.0).notify(job(sns=True))
    assert published[0]["TopicArn"] == "arn:topic"
    assert json.loads(published[0]["Message"])["type"] == "job.done"
    with pytest.raises(BadSource, match="COLDFRAME_JOBS_TOPIC"):
        PushNotifier("", "", "", Sns, lambda: 0.0).notify(job(sns=True))
    with pytest.raises(Unavailable):
        PushNotifier("", "", "arn", lambda: None, lambda: 0.0).notify(job(sns=True))
