"""CloudWatch's metrics of one function by the minute, for those who ask as they would ask CloudWatch."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from coldframe.capacity.admission import Throttle
from coldframe_local.emulator.lambda_service.lambda_types import Invoked
from coldframe_local.emulator.lambda_service.report import InvocationStatus

_MINUTE_S = 60
_KEPT = 15 * 24 * 60  # as long as CloudWatch keeps minutes

SUMS = ("Invocations", "Throttles", "Errors")
MAXIMUM = "ConcurrentExecutions"


class Counted:
    """How an invocation ended."""

    def __init__(self) -> None:
        self.throttled, self.failed = False, True

    def ended(self, ended: Invoked | Throttle) -> None:
        """It did, like this."""
        self.throttled = isinstance(ended, Throttle)
        self.failed = isinstance(ended, Invoked) and ended.outcome.status is not InvocationStatus.SUCCESS


class Minutes:
    """Metrics by the minute of a function and each of its qualifiers. Used only in the emulator's event loop.

    now: seconds since 1970.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._in_flight: Counter[str] = Counter()
        self._values: OrderedDict[int, Counter[tuple[str, str]]] = OrderedDict()

    @contextmanager
    def under_way(self, qualifier: str | None) -> Iterator[Counted]:
        """While an invocation by this qualifier is under way. It has failed unless it says otherwise."""
        resource, began_s, counted = qualifier or "", self._now(), Counted()
        self._in_flight[resource] += 1
        at_once = self._in_flight[resource]
        try:
            yield counted
        finally:
            if counted.throttled:  # it was never under way
                self._minute(began_s)[resource, "Throttles"] += 1
            else:
                self._minute(began_s)[resource, "Invocations"] += 1
                self._minute(began_s)[resource, "Errors"] += counted.failed
                self._most(began_s, resource, at_once)
                self._most(self._now(), resource, self._in_flight[resource])
            self._in_flight[resource] -= 1

    def values(self, qualifier: str | None, metric: str, start_s: int, end_s: int) -> list[tuple[int, int]]:
        """(second at which a minute begins, value) of every minute in which something happened, in order.

        qualifier: None asks for all of them together.
        """
        points = []
        for minute, counts in sorted(self._values.items()):
            at_s = minute * _MINUTE_S
            if not start_s <= at_s < end_s:
                continue
            mine = [
                value
                for (resource, name), value in counts.items()
                if name == metric and qualifier in (None, resource)
            ]
            if mine:
                points.append((at_s, sum(mine)))
        return points

    def _most(self, moment_s: float, resource: str, at_once: int) -> None:
        counts = self._minute(moment_s)
        counts[resource, MAXIMUM] = max(counts[resource, MAXIMUM], at_once)

    def _minute(self, moment_s: float) -> Counter[tuple[str, str]]:
        counts = self._values.setdefault(int(moment_s) // _MINUTE_S, Counter())
        while len(self._values) > _KEPT:
            self._values.popitem(last=False)
        return counts
