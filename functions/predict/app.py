"""The predict function: AWS events in, AWS responses out.

Importing this module is the init phase. On demand it opens the express lane, which gives
a cold environment's first answers while the engine is loaded in the background; an
environment that is initialised ahead of traffic loads everything here. What goes wrong
here ends the environment loudly, as a failed init.
"""

import os
from typing import TYPE_CHECKING

from coldframe.coldstart.express import open_lane
from coldframe.coldstart.lazy import LazyValue

if TYPE_CHECKING:
    from functions.predict.engine import Context, Engine, Event, Result

_ANSWER_LEAVES_S = 0.02  # after this, loading the engine cannot hold up an answer that is on its way


def _load_engine() -> "Engine":
    from functions.predict.engine import Engine

    return Engine(os.environ, has_answered=_lane is not None and _lane.answered > 0)


_lane = open_lane(os.environ)
_engine = LazyValue(_load_engine)
if _lane is None:
    _engine.get()


def handler(event: "Event", context: "Context") -> "Result":
    """Answers an event of API Gateway, payload 2.0 or 1.0, and whatever else `Engine` knows."""
    if _lane is not None and not _engine.is_made:
        response = _lane.answer(event, context.aws_request_id)
        if response is not None:
            _engine.start(delay_s=_ANSWER_LEAVES_S)
            return response
    return _engine.get().handle_event(event, context)
