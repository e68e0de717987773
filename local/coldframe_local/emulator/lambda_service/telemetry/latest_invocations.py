"""The latest invocations of all functions, for those who want to see each one and not only counts."""

from __future__ import annotations

from collections import deque
from itertools import islice

from coldframe.capacity.admission import Throttle
from coldframe_local.emulator.lambda_service.lambda_types import InvocationView, Invoked

_KEPT = 500


class LatestInvocations:
    """Keeps the last few hundred; older ones are forgotten, seen or not."""

    def __init__(self) -> None:
        self._number = 0
        self._views: deque[InvocationView] = deque(maxlen=_KEPT)

    def ended(self, function: str, ended: Invoked | Throttle, latency_ms: float = 0.0) -> None:
        """An invocation is over, or was refused."""
        self._number += 1
        self._views.append(InvocationView.of(self._number, function, ended, latency_ms))

    def after(self, number: int) -> tuple[InvocationView, ...]:
        """Those with a later number, oldest first."""
        new = min(max(0, self._number - number), len(self._views))
        return tuple(islice(self._views, len(self._views) - new, None))
