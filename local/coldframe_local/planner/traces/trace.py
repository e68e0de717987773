"""When a function, or several, were called, and for how long they worked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from coldframe.errors import ColdframeError

Floats = npt.NDArray[np.floating[Any]]


class TraceUnusable(ColdframeError):
    """A trace is in no form that is known, or lacks what is asked of it; says what was expected."""


@dataclass(frozen=True)
class Trace:
    """Invocations in the order of their arrival.

    arrivals_s: seconds from the start. of: which of `functions` each one calls. durations_s: without init
    phases; None when the trace does not tell them. span_s: how long was watched. inits_s: init phases seen.
    """

    arrivals_s: npt.NDArray[np.float64]
    functions: tuple[str, ...]
    of: npt.NDArray[np.uint16]
    durations_s: npt.NDArray[np.float32] | None
    span_s: float
    inits_s: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.arrivals_s)

    def only(self, function: str) -> Trace:
        """The invocations of one function. Raises TraceUnusable, which lists the busiest ones."""
        if function not in self.functions:
            counts = np.bincount(self.of, minlength=len(self.functions))
            busiest = ", ".join(self.functions[number] for number in np.argsort(-counts)[:5])
            raise TraceUnusable(f"The trace has no function {function!r}. Its busiest are: {busiest}.")
        mine = self.of == self.functions.index(function)
        return replace(
            self,
            arrivals_s=self.arrivals_s[mine],
            functions=(function,),
            of=np.zeros(int(mine.sum()), np.uint16),
            durations_s=None if self.durations_s is None else self.durations_s[mine],
        )


def as_trace(
    arrivals_s: Sequence[float] | Floats,
    functions: Sequence[str],
    durations_s: Sequence[float] | Floats | None = None,
    *,
    span_s: float | None = None,
    inits_s: Sequence[float] = (),
) -> Trace:
    """A trace of invocations in any order. functions: of each invocation; one name stands for all.

    span_s: None counts from the first arrival to the last.
    Raises TraceUnusable without any invocation.
    """
    times = np.asarray(arrivals_s, np.float64)
    if not len(times):
        raise TraceUnusable("The trace has no invocation. Name a longer time, or another function.")
    order = np.argsort(times, kind="stable")
    times = times[order]
    if span_s is None:
        times, span_s = times - times[0], float(times[-1] - times[0])
    names, numbers = np.unique(np.asarray(functions), return_inverse=True)
    if len(names) > np.iinfo(np.uint16).max:
        raise TraceUnusable(f"The trace has {len(names):,} functions, expected at most 65,535. Choose some.")
    of = np.zeros(len(times), np.uint16) if len(numbers) == 1 else numbers[order].astype(np.uint16)
    return Trace(
        times,
        tuple(map(str, names)),
        of,
        None if durations_s is None else np.asarray(durations_s, np.float32)[order],
        span_s,
        tuple(inits_s),
    )
