"""The predict function: AWS events in, AWS responses out.

Importing this module is the init phase: it loads everything that answers. An error here ends the environment
loudly, as a failed init.
"""

import os

from coldframe.coldstart.preload import preload_encoder

preload_encoder(os.environ)  # before any other import: onnxruntime starts beside them

from coldframe.coldstart.imports import paused_collector, without_typing_extensions  # noqa: E402

with paused_collector():
    with without_typing_extensions():
        import msgspec  # noqa: F401
    from coldframe_functions.predict.engine import Engine

    _engine = Engine(os.environ)

handler = _engine.handle_event
"""Answers an event of API Gateway, payload 2.0 or 1.0, and other events that `Engine` accepts."""
