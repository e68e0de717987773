"""One restore from a snapshot: AWS's own part, which is assumed, and the function's hooks, which are timed.

What is billed of a restore is the time to load the runtime and to run the hooks after it.
Source: https://docs.aws.amazon.com/lambda/latest/dg/snapstart-monitoring.html, read 2026-11-22.
"""

from __future__ import annotations

import asyncio
import math
import time

from coldframe_local.emulator.lambda_service.report import Outcome


class Restore:
    """assumed_ms: AWS's own part, which begins with `start`.

    loaded: done once the function waits behind its snapshot. failure: how the invocation ends that waited for
    a restore that failed.
    """

    def __init__(self, assumed_ms: float) -> None:
        self.loaded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.failure: Outcome | None = None
        self.restore_ms = 0.0
        self.billed_ms = 0
        self._assumed_ms = assumed_ms
        self._due_s = 0.0
        self._began_s: float | None = None

    @property
    def began(self) -> bool:
        """Whether the function runs on from its snapshot."""
        return self._began_s is not None

    def load(self) -> None:
        """The function waits behind its snapshot."""
        if not self.loaded.done():
            self.loaded.set_result(None)

    def start(self) -> None:
        """An invocation needs it."""
        self._due_s = time.perf_counter() + self._assumed_ms / 1000

    async def until_due(self) -> None:
        """Until AWS's own part is over."""
        await asyncio.sleep(max(0.0, self._due_s - time.perf_counter()))

    def begin(self) -> None:
        """The function runs on."""
        self._began_s = time.perf_counter()

    def end(self) -> float:
        """Milliseconds of the whole restore, now that the hooks have run or failed."""
        hooks_ms = (time.perf_counter() - (self._began_s or 0.0)) * 1000
        self.billed_ms = math.ceil(hooks_ms)
        self.restore_ms = self._assumed_ms + hooks_ms
        return self.restore_ms
