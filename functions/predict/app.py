"""The predict function: AWS events in, AWS responses out.

Importing this module is the init phase, in which everything is loaded. An error here ends the environment as
a
failed init.
"""

import os
from typing import TYPE_CHECKING

from coldframe.coldstart.imports import paused_collector, without_typing_extensions
from coldframe.coldstart.preload import preload_encoder

with paused_collector():
    preload_encoder(os.environ)
    with without_typing_extensions():
        import msgspec  # noqa: F401
    from functions.predict.engine import Engine

    _engine = Engine(os.environ)

if TYPE_CHECKING:
    from functions.predict.engine import Context, Event, Result


def handler(event: "Event", context: "Context") -> "Result":
    """Answers an event of API Gateway, payload 2.0 or 1.0, and other events that `Engine` accepts."""
    return _engine.handle_event(event, context)
