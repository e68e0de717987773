"""Notices to a webhook, or an SNS topic, that a job has ended.

Webhooks are signed by the rules of Standard Webhooks, so that receivers can use an existing library:
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md, read 2026-11-22.

Redirects are not followed. A webhook has ten seconds for its whole answer. A host that could not be reached
is not called for a minute, so notices to a dead host cost one wait in all.
"""

import base64
import binascii
import hashlib
import hmac
import http.client
import io
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import msgspec

from coldframe.jobs.ports import BadSource, Unavailable
from coldframe.jobs.records import Job
from coldframe.jobs.targets import Target, allowed_target, is_public
from coldframe.timing import Clock, Deadline

_LIMIT_S = 10.0
_PAUSE_S = 60.0
_SECRET = "whsec_"  # noqa: S105 - how Standard Webhooks marks one
_TOO_MANY_REQUESTS, _REQUEST_TIMEOUT, _SERVER_ERROR = 429, 408, 500

Resolve = Callable[[str, int], Sequence[str]]
"""IP addresses of a host and port. Raises OSError."""


def sign(secret: str, message_id: str, timestamp_s: int, body: bytes) -> str:
    """The header `webhook-signature`. secret: `whsec_` and base64, or any other text.

    Raises BadSource for a `whsec_` that is not base64.
    """
    key = secret.encode()
    if secret.startswith(_SECRET):
        try:
            key = base64.b64decode(secret.removeprefix(_SECRET), validate=True)
        except binascii.Error as exc:
            raise BadSource(
                "COLDFRAME_JOBS_WEBHOOK_KEY is not base64 after whsec_. Set a valid secret"
            ) from exc
    signed = f"{message_id}.{timestamp_s}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def message_of(job: Job) -> bytes:
    """Notice about a job that has ended: no texts, no answers."""
    data = {"id": job.id, "state": job.state, "parts": job.parts, "done": len(job.done), "reason": job.reason}
    return msgspec.json.encode({"type": f"job.{job.state}", "data": data})


class Breaker:
    """Circuit breaker of hosts: after a failure a host is not called for a while. Safe for threads.

    The number of hosts is limited by what the deployment allows.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open_until_s: dict[str, float] = {}

    @contextmanager
    def calling(self, host: str) -> Iterator[None]:
        """Calls a host. Raises Unavailable, also for a network's failure, which opens the breaker."""
        if self._clock() < self._open_until_s.get(host, 0.0):
            raise Unavailable("the webhook's host could not be reached a moment ago")
        try:
            yield
        except OSError as exc:
            self._open_until_s[host] = self._clock() + _PAUSE_S
            raise Unavailable(type(exc).__name__) from exc
        self._open_until_s.pop(host, None)


class PushNotifier:
    """Notifies webhooks and a topic. Safe for threads.

    sns: boto3's client, created at its first use. now: seconds since 1970.
    """

    def __init__(
        self,
        allowed: str,
        secret: str,
        topic: str,
        sns: Callable[[], Any],
        now: Clock,
        resolve: Resolve | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._allowed = allowed
        self._secret = secret
        self._topic = topic
        self._sns = sns
        self._now = now
        self._resolve = resolve or addresses
        self._clock = clock
        self._breaker = Breaker(clock)

    def notify(self, job: Job) -> None:
        """Sends the notice about a job. Raises Unavailable; BadSource if a receiver can never be notified."""
        assert job.push is not None  # noqa: S101 - who is not to be told is not told
        body = message_of(job)
        if job.push.webhook:
            self._post(allowed_target(job.push.webhook, self._allowed), job, body)
        if job.push.sns:
            self._publish(body)

    def _publish(self, body: bytes) -> None:
        if not self._topic:
            raise BadSource("COLDFRAME_JOBS_TOPIC is empty")
        try:
            self._sns().publish(TopicArn=self._topic, Message=body.decode())
        except Exception as exc:  # any error of boto3 or the network
            raise Unavailable(type(exc).__name__) from exc

    def _post(self, target: Target, job: Job, body: bytes) -> None:
        if not self._secret:
            raise BadSource("COLDFRAME_JOBS_WEBHOOK_KEY is empty. Set it to sign webhooks")
        timestamp_s = int(self._now())
        headers = {
            "host": target.url.netloc,
            "content-type": "application/json",
            "user-agent": "coldframe",
            # Equal for each attempt, so that a receiver recognises repeats.
            "webhook-id": f"{job.id}.{job.generation}.{job.state}",
            "webhook-timestamp": str(timestamp_s),
            "webhook-signature": sign(
                self._secret, f"{job.id}.{job.generation}.{job.state}", timestamp_s, body
            ),
        }
        status = self._send(target, headers, body)
        if status in (_REQUEST_TIMEOUT, _TOO_MANY_REQUESTS) or status >= _SERVER_ERROR:
            raise Unavailable(f"the webhook answered {status}")
        if status // 100 != 2:
            raise BadSource(f"the webhook answered {status}")

    def _send(self, target: Target, headers: dict[str, str], body: bytes) -> int:
        path = target.url.path or "/"
        path += f"?{target.url.query}" if target.url.query else ""
        deadline = Deadline(_LIMIT_S, self._clock)
        try:
            host = f"{target.host}:{target.port}"
            with self._breaker.calling(host), self._connect(target, deadline) as connected:
                connected.settimeout(_left_s(deadline))
                connection = http.client.HTTPConnection(target.host, target.port)
                connection.sock = connected
                connection.request("POST", path, body, headers)
                return _Answer(connected, deadline).status()
        except http.client.HTTPException as exc:
            raise Unavailable(type(exc).__name__) from exc

    def _connect(self, target: Target, deadline: Deadline) -> socket.socket:
        """A connection to a checked address: the name is not resolved again. Raises OSError."""
        addresses = self._resolve(target.host, target.port)
        if target.public_only and not all(map(is_public, addresses)):
            raise BadSource("the host of the webhook has an address that is not public. Use a public host")
        plain = socket.create_connection((addresses[0], target.port), _left_s(deadline))
        if target.url.scheme == "http":
            return plain
        try:
            plain.settimeout(_left_s(deadline))
            return ssl.create_default_context().wrap_socket(plain, server_hostname=target.host)
        except BaseException:
            plain.close()
            raise


class _Answer(io.RawIOBase):
    """The answer on a socket, as a file whose reads end at one deadline, however slowly bytes arrive."""

    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        self._connected = connected
        self._deadline = deadline

    def status(self) -> int:
        """Reads status and headers, no body. Raises OSError, HTTPException."""
        response = http.client.HTTPResponse(cast(socket.socket, self), method="POST")
        response.begin()
        return response.status

    def makefile(self, mode: str) -> io.BufferedReader:
        """Methods of a socket that http.client calls."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connected.settimeout(_left_s(self._deadline))
        return self._connected.recv_into(buffer)


def _left_s(deadline: Deadline) -> float:
    """Seconds until the deadline. Raises TimeoutError after it."""
    left_s = deadline.remaining_s()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def addresses(host: str, port: int) -> Sequence[str]:
    """All IP addresses of a host. Raises OSError."""
    records = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in records]
