"""Demand for the replay of warmers: the environments that each function of a trace needed, slot by slot."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from coldframe_local.planner.simulator.concurrency import means, peaks
from coldframe_local.planner.traces.made import made
from coldframe_local.planner.traces.read import read_trace
from coldframe_local.planner.traces.trace import Trace, TraceUnusable

Levels = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating[Any]]

MINUTE_S = 60.0
_MADE_RPS, _MADE_H, _MADE_BURST = (0.002, 0.01, 0.03, 0.1, 1.0), 96.0, 10
_DURATION_S = 0.05  # where a trace tells none, and of invocations made of minutes


@dataclass(frozen=True)
class Demand:
    """One function. peaks: environments busy at once, the most of each slot; arrivals in order.

    by_minute: the mean concurrency of each minute, -1 without any invocation.
    """

    name: str
    peaks: Levels
    slot_s: float
    arrivals_s: npt.NDArray[np.float64]
    durations_s: npt.NDArray[np.float32]
    by_minute: npt.NDArray[np.float64]
    memory_mb: float | None = None

    @property
    def span_s(self) -> float:
        return len(self.peaks) * self.slot_s


def demands(path: Path, slot_s: float, seed: int = 0) -> list[Demand]:
    """Demand of every function of the trace in `path`. seed: for values that a trace gives as a distribution.

    Raises TraceUnusable.
    """
    if not path.is_file():
        raise TraceUnusable(f"{path} is not a file. Name a CSV file of arrivals, or a log with REPORT lines.")
    if (rows := _concurrency_rows(path)) is not None:
        return [
            _of_minutes(name, minutes, memory_mb, slot_s, (seed, number))
            for number, (name, minutes, memory_mb) in enumerate(rows)
        ]
    return list(of_trace(read_trace(path, seed=seed), slot_s))


def made_demands(shape: str, slot_s: float, seed: int) -> list[Demand]:
    """Demand of five functions of a shape of `traces.made`: a request in eight minutes to one a second."""
    return [
        replace(one, name=f"{shape}, {rps:g} a second")
        for rps in _MADE_RPS
        for one in of_trace(made(rps, _MADE_H, shape, seed, _MADE_BURST), slot_s)
    ]


def of_trace(trace: Trace, slot_s: float) -> Iterator[Demand]:
    """Demand of every function of a trace of invocations."""
    span_s = max(trace.span_s, slot_s)
    for name in trace.functions:
        mine = trace.only(name)
        durations_s = mine.durations_s
        if durations_s is None:
            durations_s = np.full(len(mine), _DURATION_S, np.float32)
        yield Demand(
            name,
            peaks(mine.arrivals_s, durations_s, slot_s, span_s),
            slot_s,
            mine.arrivals_s,
            durations_s,
            means(mine.arrivals_s, durations_s, span_s),
        )


def _concurrency_rows(path: Path) -> list[tuple[str, Levels, float]] | None:
    """Rows of a table of containers in use, as FeMux prepares Azure's of 2019; None for another file."""
    with path.open(newline="") as file:
        try:
            rows = csv.DictReader(file)
            columns = list(rows.fieldnames or ())
            if "app" not in columns or "memory_mb" not in columns or "1" not in columns:
                return None
            minutes = [name for name in columns if name.isdecimal()]
            return [
                (
                    row["app"],
                    np.ceil([float(row[minute] or 0) for minute in minutes]).astype(np.int64),
                    float(row["memory_mb"]),
                )
                for row in rows
            ]
        except (ValueError, UnicodeDecodeError, csv.Error) as exc:
            raise TraceUnusable(
                f"{path} is not a table of containers in use: {exc}. Expected `app`, `memory_mb` and the "
                "minutes 1, 2, …, all numbers."
            ) from exc


def _of_minutes(name: str, minutes: Levels, memory_mb: float, slot_s: float, seed: tuple[int, int]) -> Demand:
    """Invocations at once in each minute, at some moment of it."""
    moments_s = (np.arange(len(minutes)) + np.random.default_rng(seed).random(len(minutes)) * 0.99) * MINUTE_S
    arrivals_s = np.repeat(moments_s, minutes)
    durations_s = np.full(len(arrivals_s), _DURATION_S, np.float32)
    if slot_s == MINUTE_S:
        peaks = minutes
    else:
        slots = int(np.ceil(len(minutes) * MINUTE_S / slot_s))
        peaks = np.zeros(slots, np.int64)
        np.maximum.at(peaks, (moments_s // slot_s).astype(np.int64), minutes)
    by_minute = np.where(minutes > 0, minutes, -1.0)
    return Demand(name, peaks, slot_s, arrivals_s, durations_s, by_minute, memory_mb)
