"""`python3 -m coldframe.server.health [live]`: whether the server of this container is ready, or alive.

For platforms whose health check is a command in the container: the image has no curl. Exit code 0 or 1.
"""

import http.client
import os
import sys
from collections.abc import Mapping

from coldframe.server.facts import DEFAULT_PORT, LIVE, PORT, READY

_PATIENCE_S = 5


def ask(path: str, environ: Mapping[str, str]) -> bool:
    """Whether the server on this machine answers `path` with 200."""
    connection = http.client.HTTPConnection(
        "127.0.0.1", int(environ.get(PORT) or DEFAULT_PORT), timeout=_PATIENCE_S
    )
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(0 if ask(LIVE if sys.argv[1:] == ["live"] else READY, os.environ) else 1)
