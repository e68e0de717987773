"""Environments that are loaded and wait behind their snapshot: one of each version, ready to be restored.

Lambda loads a function once, when a version is published, and restores any number of copies. Here each copy
is a process that has loaded for itself; the next one does so while the one before is in use.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from coldframe_local.emulator.lambda_service.environments.environment import ExecutionEnvironment


class Slot:
    """The number of an environment, which it gets when it is needed. -1: not yet."""

    def __init__(self) -> None:
        self.environment_id = -1


Waiting = tuple[ExecutionEnvironment, Slot]


class Snapshots:
    """make: a new environment of a version. in_background: runs a coroutine to its end."""

    def __init__(
        self,
        make: Callable[[str, Slot], ExecutionEnvironment],
        in_background: Callable[[Coroutine[Any, Any, Any]], object],
    ) -> None:
        self._make = make
        self._in_background = in_background
        self._waiting: dict[str, Waiting] = {}
        self._closed = False

    def prepare(self, version: str, *, announced: bool = False) -> None:
        """Begins to load the next one. announced: as when the version is published."""
        if self._closed:
            return
        slot = Slot()
        environment = self._make(version, slot)
        self._waiting[version] = environment, slot
        self._in_background(environment.load(announced=announced))

    def take(self, version: str, environment_id: int) -> ExecutionEnvironment:
        """The one that waits, loaded or not, under its number from now on; another one takes its place."""
        environment, slot = self._waiting.pop(version)
        slot.environment_id = environment_id
        self.prepare(version)
        return environment

    def has(self, version: str) -> bool:
        """Whether one waits."""
        return version in self._waiting

    def lost(self, slot: Slot) -> None:
        """One has ended before it was needed. The next restore loads its own."""
        for version, (environment, own) in list(self._waiting.items()):
            if own is slot:
                del self._waiting[version]
                self._in_background(environment.stop())

    def renew(self) -> None:
        """The code has changed: waiting snapshots have loaded the old code."""
        versions = list(self._waiting)
        self._stop()
        for version in versions:
            self.prepare(version, announced=True)

    def close(self) -> None:
        """Ends all of them, and loads no other."""
        self._closed = True
        self._stop()

    def _stop(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for environment, _ in waiting.values():
            self._in_background(environment.stop())
