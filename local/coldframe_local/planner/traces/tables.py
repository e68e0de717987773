"""CSV traces: Azure Functions 2019 and 2021, and one time stamp for each request."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from coldframe_local.planner.traces.trace import Floats, Trace, TraceUnusable, as_trace

_MINUTES = tuple(map(str, range(1, 1441)))
# The columns of Azure's durations of 2019, in milliseconds, and the share of invocations below each.
_PERCENTILES = (0, 1, 25, 50, 75, 99, 100)
_ARRIVALS = {"arrival_s": 1.0, "invoke_time_ms": 1e-3, "timestamp": 1.0, "time": 1.0}
_FUNCTIONS = ("function", "func_name", "func", "HashFunction")
_DURATIONS = {"duration_s": 1.0, "duration_ms": 1e-3}

Row = Mapping[str, str]


def is_table(path: Path) -> bool:
    """Whether the first line is one of columns, and not of a log."""
    with path.open("rb") as file:
        first = file.readline()
    return path.suffix == ".csv" or any(name.encode() in first.split(b",") for name in ("func", *_ARRIVALS))


def read_table(path: Path, durations: Path | None, seed: int, function: str | None = None) -> Trace:
    """A trace from a CSV file, by the names of its columns.

    function: Azure's files of 2019 are so large that only this one's invocations are made of them.

    durations: the file of percentiles that belongs to invocations of Azure 2019. seed: of the moments within
    each minute, and of the durations, where only their distribution is known.
    Raises TraceUnusable.
    """
    try:
        with path.open(newline="") as file:
            rows = csv.DictReader(file)
            columns = set(rows.fieldnames or ())
            if {"HashFunction", "1", "1440"} <= columns:
                selection = (row for row in rows if function in (None, row["HashFunction"]))
                return _minutes(selection, durations, seed)
            if {"func", "end_timestamp", "duration"} <= columns:
                return _ends(rows)
            if columns & _ARRIVALS.keys():
                return _stamps(rows, columns)
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as exc:
        raise TraceUnusable(f"{path} is not a trace: {exc}. Expected a CSV file.") from exc
    raise TraceUnusable(
        f"{path} has the columns {', '.join(sorted(columns)[:8]) or '(none)'}. Expected one of "
        f"{', '.join(_ARRIVALS)}; or `func`, `end_timestamp` and `duration` (Azure Functions 2021); or "
        "`HashFunction` and the minutes 1 to 1440 (Azure Functions 2019)."
    )


def spread(counts: npt.NDArray[np.int64], seed: int | tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Seconds of each invocation of consecutive minutes: anywhere in its minute, in order."""
    starts_s = np.repeat(np.arange(len(counts)) * 60.0, counts)
    return np.sort(starts_s + np.random.default_rng(seed).uniform(0.0, 60.0, len(starts_s)))


def from_quantiles(shares: Iterable[float], values: Floats, count: int, seed: tuple[int, ...]) -> Floats:
    """Draws whose distribution has these quantiles, with straight lines between them."""
    uniform = np.random.default_rng(seed).random(count)
    return np.interp(uniform, np.asarray(list(shares)), values)


def _minutes(rows: Iterable[Row], durations: Path | None, seed: int) -> Trace:
    quantiles_ms = {} if durations is None else _azure_durations(durations)
    arrivals, names, times = [], [], []
    for number, row in enumerate(rows):
        counts = np.array([int(row[minute] or 0) for minute in _MINUTES], np.int64)
        name = row["HashFunction"]
        arrivals.append(spread(counts, (seed, number)))
        names.append(np.repeat(name, counts.sum()))
        if durations is not None:
            if name not in quantiles_ms:
                raise TraceUnusable(f"{durations} has no durations of {name}. Give the file of the same day.")
            shares = [percent / 100 for percent in _PERCENTILES]
            times.append(
                from_quantiles(shares, quantiles_ms[name] / 1e3, int(counts.sum()), (seed, number, 1))
            )
    if not arrivals:
        raise TraceUnusable("The trace has no invocation of that function, or none at all. Name another one.")
    return as_trace(
        np.concatenate(arrivals),
        list(np.concatenate(names)),
        np.concatenate(times) if times else None,
        span_s=60.0 * len(_MINUTES),
    )


def _azure_durations(path: Path) -> dict[str, Floats]:
    with path.open(newline="") as file:
        return {
            row["HashFunction"]: np.array([float(row[f"percentile_Average_{p}"]) for p in _PERCENTILES])
            for row in csv.DictReader(file)
        }


def _ends(rows: Iterable[Row]) -> Trace:
    read = [(row["func"], float(row["end_timestamp"]), float(row["duration"])) for row in rows]
    return as_trace(
        [end_s - duration_s for _, end_s, duration_s in read],
        [name for name, _, _ in read],
        [duration_s for _, _, duration_s in read],
    )


def _stamps(rows: Iterable[Row], columns: set[str]) -> Trace:
    column = next(name for name in _ARRIVALS if name in columns)
    function = next((name for name in _FUNCTIONS if name in columns), None)
    duration = next((name for name in _DURATIONS if name in columns), None)
    arrivals, names, times = [], [], []
    for row in rows:
        arrivals.append(_seconds(row[column]) * _ARRIVALS[column])
        names.append(row[function] if function else "function")
        if duration:
            times.append(float(row[duration]) * _DURATIONS[duration])
    return as_trace(arrivals, names, times if duration else None)


def _seconds(text: str) -> float:
    """A number, or a moment of ISO 8601."""
    try:
        return float(text)
    except ValueError:
        return datetime.fromisoformat(text).timestamp()
