"""One deadline for the whole of an AWS call: connect, handshake, send and every byte of the answer.

botocore's timeouts apply to single socket operations: a server that sends a byte now and then never exceeds
them. Here each operation gets the rest of the deadline. So no thread is needed to give up in time, and none
is left when Lambda freezes the environment. Only the name lookup cannot be interrupted.
"""

import io
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
)
from botocore.httpsession import URLLib3Session

from coldframe.timing import Deadline

_IDLE_S = 20.0  # a connection idle for longer may be dead without notice: the environment was frozen
_deadline: ContextVar[Deadline] = ContextVar("deadline")


@contextmanager
def deadline_of_calls(deadline: Deadline) -> Iterator[None]:
    """Ends every call of AWS clients in the `with` block, in this thread, by `deadline`."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def enforce_deadlines(client: Any) -> None:
    """Makes an AWS client send through connections that keep the deadline.

    The client keeps botocore's session: proxies and certificates are as configured.
    """
    session = client._endpoint.http_session  # not public; the fault tests fail if it moves
    session._pool_classes_by_scheme = session._manager.pool_classes_by_scheme = {
        "http": _Pool,
        "https": _SecurePool,
    }
    service = client.meta.service_model.service_id.hyphenize()
    client.meta.events.register_first(f"before-send.{service}", _Rest(session).close_if_idle)


class _Rest:
    """Closes the connections of a session after a long rest, before they are used again.

    Safe for threads: the first call after a rest closes them, before any call takes a connection.
    """

    def __init__(self, session: URLLib3Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._used_s = time.time()

    def close_if_idle(self, **_: Any) -> None:
        """Handles botocore's `before-send`: returns no response, so botocore sends the request as usual."""
        with self._lock:
            now_s = time.time()  # the time of day advances while the environment is frozen
            if now_s - self._used_s > _IDLE_S:
                self._session.close()
            self._used_s = now_s


class _DeadlineSocket:
    """A connected socket on which each operation waits no longer than the deadline allows."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def sendall(self, data: Any) -> None:
        self.settimeout(None)
        self._sock.sendall(data)

    def makefile(self, mode: str, buffering: int = -1) -> io.BufferedReader:
        return io.BufferedReader(_DeadlineReader(self, self._sock.makefile(mode, buffering=0)))

    def settimeout(self, timeout_s: float | None) -> None:
        """Sets the rest of the deadline, instead of `value`. Raises TimeoutError when the deadline has
        passed.
        """
        self._sock.settimeout(_remaining_s(timeout_s))


class _DeadlineReader(io.RawIOBase):
    def __init__(self, sock: _DeadlineSocket, raw: Any) -> None:
        self._sock = sock
        self._raw = raw  # counts itself as a user of the socket, until it is closed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(None)
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _KeepsDeadline:
    """Mixin for urllib3's connections."""

    def _new_conn(self: Any) -> socket.socket:
        failure: OSError = ConnectionError("The name has no address. Check the endpoint's host name.")
        for family, kind, protocol, _, address in socket.getaddrinfo(
            self._dns_host, self.port, 0, socket.SOCK_STREAM
        ):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.settimeout(_remaining_s(self.timeout))
                sock.connect(address)
                sock.settimeout(_remaining_s(self.timeout))  # from the TLS handshake, if there is one
            except OSError as exc:
                sock.close()
                failure = exc
            else:
                return sock
        raise failure

    def connect(self: Any) -> None:
        super().connect()  # type: ignore[misc]
        self.sock = _DeadlineSocket(self.sock)


class _Connection(_KeepsDeadline, AWSHTTPConnection):  # type: ignore[misc]
    pass


class _SecureConnection(_KeepsDeadline, AWSHTTPSConnection):  # type: ignore[misc]
    pass


class _Pool(AWSHTTPConnectionPool):  # type: ignore[misc]
    ConnectionCls = _Connection


class _SecurePool(AWSHTTPSConnectionPool):  # type: ignore[misc]
    ConnectionCls = _SecureConnection


def _remaining_s(default_s: float | None) -> float | None:
    deadline = _deadline.get(None)
    if deadline is None:
        return default_s
    remaining_s = deadline.remaining_s()
    if remaining_s <= 0:
        raise TimeoutError("The deadline of this call has passed. Allow it more time.")
    return remaining_s
