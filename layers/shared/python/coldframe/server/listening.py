"""A listening socket, or an error that says what to do."""

import errno
import socket

from coldframe.errors import ColdframeError

_LAST_PORT = 65_535


class CannotListen(ColdframeError):
    """The server cannot listen on its address; the text says what to do."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, which proves that the address belongs to this server.

    Raises CannotListen when the address is taken or not allowed.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # TCP by name: asyncio turns Nagle's delay off only for a named protocol.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # Connections of a run that just ended do not count as "in use".
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(socket.SOMAXCONN)
    except OSError as exc:
        listener.close()
        raise CannotListen(_cannot_listen(host, port, exc)) from exc
    return listener


def _cannot_listen(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        other = port + 1 if port < _LAST_PORT else port - 1
        return (
            f"Port {port} on {host} is in use by another program. "
            f"Stop that program, or choose a free port: --port {other}."
        )
    return (
        f"Cannot listen on {host}, port {port}: {error.strerror}. "
        "Choose an address of this machine with --host and a port from 1024 to 65535 with --port."
    )
