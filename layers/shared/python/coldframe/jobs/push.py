"""Telling a webhook, or an SNS topic, that a job has ended.

A webhook is signed as Standard Webhooks has it, so that its receiver can use a library that exists:
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md, read 2026-11-22.

Whoever may start jobs must not make this function call what only this function reaches (server-side request
forgery). So only hosts that the deployment names are called; a host that is named without a scheme only
over TLS, on port 443, and at addresses of the public internet. Redirects are not followed.
"""

import base64
import binascii
import hashlib
import hmac
import http.client
import ipaddress
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec import Struct

from coldframe.jobs.ports import BadSource, Unavailable
from coldframe.jobs.records import Job
from coldframe.timing import Clock

_TIMEOUT_S = 10.0
_SECRET = "whsec_"  # noqa: S105 - how Standard Webhooks marks one
_PORTS = {"https": 443, "http": 80}
_TOO_MANY_REQUESTS, _REQUEST_TIMEOUT, _SERVER_ERROR = 429, 408, 500

Resolve = Callable[[str, int], Sequence[str]]
"""IP addresses of a host and port. Raises OSError."""


class Target(Struct, frozen=True):
    """Where a webhook is. public_only: no address of a private network may stand behind the host."""

    url: SplitResult
    public_only: bool

    @property
    def host(self) -> str:
        return self.url.hostname or ""

    @property
    def port(self) -> int:
        return self.url.port or _PORTS[self.url.scheme]


def allowed_target(url: str, allowed: str) -> Target:
    """The target of a webhook. allowed: names of hosts, or whole origins, separated by commas.

    Raises BadSource where the deployment does not allow it.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as exc:
        raise BadSource("the webhook is no address") from exc
    if parts.scheme not in _PORTS or not host or parts.username is not None or not url.isascii():
        raise BadSource("the webhook is no https:// address")
    origin = f"{parts.scheme}://{parts.netloc}".lower()
    for entry in filter(None, (each.strip().lower() for each in allowed.split(","))):
        if "://" in entry and origin == entry.rstrip("/"):
            return Target(parts, public_only=False)
        if "://" not in entry and host == entry and parts.scheme == "https" and port in (None, 443):
            return Target(parts, public_only=True)
    raise BadSource("the host of the webhook is none that COLDFRAME_JOBS_WEBHOOK_HOSTS names")


def sign(secret: str, message_id: str, timestamp_s: int, body: bytes) -> str:
    """The header `webhook-signature`. secret: `whsec_` and base64, or any other text.

    Raises BadSource for a `whsec_` that is no base64.
    """
    key = secret.encode()
    if secret.startswith(_SECRET):
        try:
            key = base64.b64decode(secret.removeprefix(_SECRET), validate=True)
        except binascii.Error as exc:
            raise BadSource("COLDFRAME_JOBS_WEBHOOK_KEY is no base64 after whsec_") from exc
    signed = f"{message_id}.{timestamp_s}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def message_of(job: Job) -> bytes:
    """What is said of a job that has ended: never a text, and no answer."""
    data = {"id": job.id, "state": job.state, "parts": job.parts, "done": job.done, "reason": job.reason}
    return msgspec.json.encode({"type": f"job.{job.state}", "data": data})


class Pusher:
    """Tells webhooks and a topic. sns: boto3's client, when it is first needed. now: seconds since 1970."""

    def __init__(
        self,
        allowed: str,
        secret: str,
        topic: str,
        sns: Callable[[], Any],
        now: Clock,
        resolve: Resolve | None = None,
    ) -> None:
        self._allowed = allowed
        self._secret = secret
        self._topic = topic
        self._sns = sns
        self._now = now
        self._resolve = resolve or addresses

    def tell(self, job: Job) -> None:
        """Says how the job has ended. Raises Unavailable; BadSource for what will never be taken."""
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
        except Exception as exc:  # whatever boto3 or the network comes up with
            raise Unavailable(type(exc).__name__) from exc

    def _post(self, target: Target, job: Job, body: bytes) -> None:
        if not self._secret:
            raise BadSource("COLDFRAME_JOBS_WEBHOOK_KEY is empty, and a webhook is never called unsigned")
        timestamp_s = int(self._now())
        headers = {
            "host": target.url.netloc,
            "content-type": "application/json",
            "user-agent": "coldframe",
            # The same for each attempt, so that a receiver can tell them.
            "webhook-id": f"{job.id}.{job.state}",
            "webhook-timestamp": str(timestamp_s),
            "webhook-signature": sign(self._secret, f"{job.id}.{job.state}", timestamp_s, body),
        }
        status = self._send(target, headers, body)
        if status in (_REQUEST_TIMEOUT, _TOO_MANY_REQUESTS) or status >= _SERVER_ERROR:
            raise Unavailable(f"the webhook answered {status}")
        if status // 100 != 2:
            raise BadSource(f"the webhook answered {status}")

    def _send(self, target: Target, headers: dict[str, str], body: bytes) -> int:
        path = target.url.path or "/"
        path += f"?{target.url.query}" if target.url.query else ""
        connection: http.client.HTTPConnection | None = None
        try:
            connection = self._connect(target)
            connection.request("POST", path, body, headers)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException) as exc:
            raise Unavailable(type(exc).__name__) from exc
        finally:
            if connection is not None:
                connection.close()

    def _connect(self, target: Target) -> http.client.HTTPConnection:
        """Connected to an address that was checked: the name is not asked for again. Raises OSError."""
        found = self._resolve(target.host, target.port)
        if target.public_only and not all(ipaddress.ip_address(each).is_global for each in found):
            raise BadSource("the host of the webhook has an address that is not public")
        connection = http.client.HTTPConnection(target.host, target.port, timeout=_TIMEOUT_S)
        plain = socket.create_connection((found[0], target.port), _TIMEOUT_S)
        if target.url.scheme == "https":
            plain = ssl.create_default_context().wrap_socket(plain, server_hostname=target.host)
        connection.sock = plain
        return connection


def addresses(host: str, port: int) -> Sequence[str]:
    """All IP addresses of a host. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]
