"""The waiting passes, in the order they will run: by the earliest due time of their rows.

A plan proves its promises: it is simulated before a job is admitted to it.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence

from coldframe.scheduling.forecast import Forecast
from coldframe.scheduling.jobs import Group, Job, Order
from coldframe.scheduling.pass_times import PassModel
from coldframe.scheduling.passes import Entry, Pass


class Plan:
    """Passes in the order they will run. Forecasts are cached until the plan or the pass times change."""

    def __init__(self, passes: Iterable[Pass] = ()) -> None:
        self.passes = list(passes)
        self._forecasts: dict[float, Forecast] = {}
        self._copied: dict[float, Forecast] = {}  # of the plan that this one is a copy of
        self._unchanged = 0  # first passes that are equal to the original's

    def __bool__(self) -> bool:
        return bool(self.passes)

    def copy(self) -> "Plan":
        """Another plan of the same passes."""
        copied = Plan(self.passes)
        copied._copied, copied._unchanged = dict(self._forecasts), len(self.passes)
        return copied

    def forecast(self, free_s: Sequence[float], caution: float) -> Forecast:
        """Simulation of this plan. After a change to a copy, it starts where the copy changed."""
        forecast = self._forecasts.get(caution)
        if forecast is None or forecast.free_s != free_s:
            previous = self._copied.get(caution)
            if previous and previous.free_s != free_s:
                previous = None
            forecast = Forecast(self.passes, free_s, caution, previous, self._unchanged)
            self._forecasts[caution] = forecast
        return forecast

    def forget(self) -> None:
        """Drops all forecasts, since pass times have been learnt again."""
        self._change(0)

    def add(self, new: Pass) -> None:
        """Inserts a pass by its due time."""
        place = bisect_right(self.passes, new.order, key=_order)
        self.passes.insert(place, new)
        self._change(place)

    def take_first(self) -> Pass | None:
        """Removes and returns the pass to run now; None where no pass has its rows."""
        for place, one in enumerate(self.passes):
            if not one.group.is_expected:
                self._change(0)
                return self.passes.pop(place)
        return None

    def add_rows(self, entries: Sequence[Entry], group: Group, model: PassModel, size: int) -> None:
        """Plans rows of one group, in new passes of `size`."""
        for start in range(0, len(entries), size):
            self.add(Pass(group, model, entries[start : start + size]))

    def join(
        self, entries: list[Entry], group: Group, size: int, closed: Collection[Pass] = ()
    ) -> list[Entry]:
        """Puts rows of one group into passes that are not `closed` and have room. Returns the rest."""
        is_sorted = True
        for place in reversed(range(len(self.passes))):  # the last ones first: this delays fewer other passes
            one = self.passes[place]
            room = size - len(one.entries) if one.group == group and not one.is_alone else 0
            if room > 0 and one not in closed:
                joined = one.with_more(entries[:room])
                is_sorted = is_sorted and joined.order == one.order
                self.passes[place], entries = joined, entries[room:]
                self._change(place)
                if not entries:
                    break
        if not is_sorted:  # jobs already in the pass are more urgent
            self._replace(self.passes)
        return entries

    def fill(self, first: Pass, size: int) -> Pass:
        """`first` with rows of later passes of its group, up to `size`; these passes keep their other
        rows.
        """
        entries: list[Entry] = []
        passes = []
        for one in self.passes:
            may_join = one.group == first.group and not one.is_alone
            room = size - len(first.entries) - len(entries) if may_join else 0
            if room > 0:
                entries += one.entries[:room]
                if len(one.entries) > room:
                    passes.append(one.with_entries(one.entries[room:]))
            else:
                passes.append(one)
        self._replace(passes)
        return first.with_more(entries) if entries else first

    def drop(self, job: Job) -> None:
        """Removes a job's rows."""
        passes = []
        for one in self.passes:
            left = [entry for entry in one.entries if entry[0] is not job]
            if len(left) == len(one.entries):
                passes.append(one)
            elif left:
                passes.append(one.with_entries(left))
        self._replace(passes)

    def _replace(self, passes: list[Pass]) -> None:
        passes.sort(key=_order)
        self.passes = passes
        self._change(0)

    def _change(self, place: int) -> None:
        self._unchanged = min(self._unchanged, place)
        self._forecasts.clear()


def _order(one: Pass) -> Order:
    return one.order
