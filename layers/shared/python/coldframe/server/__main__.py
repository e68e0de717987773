"""`python3 -m coldframe.server`: the image's command. Settings come from the environment."""

import os
import sys

from coldframe.errors import ColdframeError
from coldframe.server.facts import FAILED


def main() -> int:
    """Serves until a signal; returns the exit code."""
    from coldframe.server.run import run
    from coldframe.server.settings import load_server_settings, read_port

    try:
        return run(load_server_settings(os.environ), read_port(os.environ))
    except ColdframeError as exc:
        print(f"{type(exc).__name__}: {exc}", file=sys.stderr)
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
