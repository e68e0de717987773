"""A number that grows with every change, and those who wait for the next one."""

from __future__ import annotations

import asyncio


class Changes:
    """revision: changes so far."""

    def __init__(self) -> None:
        self.revision = 0
        self._next: asyncio.Future[None] | None = None

    def add(self) -> None:
        """Something has changed."""
        self.revision += 1
        if self._next is not None:
            if not self._next.done():
                self._next.set_result(None)
            self._next = None

    async def after(self, revision: int) -> int:
        """Waits until the revision is a later one than `revision`, and returns it.

        Changes that come while nobody waits are one change to the next who does.
        """
        while self.revision <= revision:
            if self._next is None:
                self._next = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._next)  # others may wait for it too
        return self.revision
