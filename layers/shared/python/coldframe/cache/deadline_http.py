"""One deadline for the whole of an AWS call: connect, handshake, send and every byte of the answer.

botocore's timeouts are per socket operation: a server that sends a byte now and
then is never late. Here every operation gets what is left of the deadline, so
that no thread is needed to give up in time, and none is left when Lambda freezes
the environment. Only the name lookup is the resolver's: nothing can interrupt it.
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

_IDLE_S = 20.0  # a connection idle for longer may be dead without having said so: the environment was frozen
_deadline: ContextVar[Deadline] = ContextVar("deadline")


@contextmanager
def deadline_of_calls(deadline: Deadline) -> Iterator[None]:
    """What AWS clients do in the `with` block, in this thread, is over by `deadline`."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def enforce_deadlines(client: Any) -> None:
    """Lets an AWS client send through connections that keep the deadline.

    Its session stays the one that botocore made: proxies and certificates are as configured.
    """
    session = client._endpoint.http_session  # not public; the fault tests fail if it moves
    session._pool_classes_by_scheme = session._manager.pool_classes_by_scheme = {
        "http": _Pool,
        "https": _SecurePool,
    }
    service = client.meta.service_model.service_id.hyphenize()
    client.meta.events.register_first(f"before-send.{service}", _Rest(session).close_if_idle)


class _Rest:
    """Closes the connections of a session that has rested for long, before they are used again.

    Safe for threads: the first call after a rest closes them, before it and any other call takes one.
    """

    def __init__(self, session: URLLib3Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._used_s = time.time()

    def close_if_idle(self, **_: Any) -> None:
        """Answers botocore's `before-send`: returns no response, so the request is sent as ever."""
        with self._lock:
            now_s = time.time()  # the time of day goes on while the environment is frozen
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
        """Whatever is asked for: what is left. Raises TimeoutError when that is nothing."""
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
        failure: OSError = ConnectionError("The name has no address.")
        for family, kind, protocol, _, address in socket.getaddrinfo(
            self._dns_host, self.port, 0, socket.SOCK_STREAM
        ):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.settimeout(_remaining_s(self.timeout))
                sock.connect(address)
                sock.settimeout(_remaining_s(self.timeout))  # of the handshake, where there is one
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
        raise TimeoutError("The deadline of this call has passed.")
    return remaining_s
