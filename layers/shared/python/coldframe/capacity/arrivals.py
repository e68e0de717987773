"""When requests are due: seeded, decided before the first is sent, whatever the target does (pure)."""

import csv
import random
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

Arrivals = Callable[[float, int, int], list[float]]
"""Offered rate per second, number of requests, seed -> seconds from the start, rising."""


class TraceUnreadable(ValueError):
    """A file of arrivals has an unknown form; the message says which form is expected."""


def poisson(rate_rps: float, count: int, seed: int) -> list[float]:
    """Independent callers: exponential gaps."""
    source = random.Random(seed)
    return list(accumulate(source.expovariate(rate_rps) for _ in range(count)))


def constant(rate_rps: float, count: int, seed: int) -> list[float]:
    """One request every 1 / rate seconds."""
    return [number / rate_rps for number in range(count)]


def replay(times_s: Sequence[float]) -> Arrivals:
    """The gaps of a trace, repeated, stretched to the rate: its bursts at any load."""
    gaps = [after - before for before, after in pairwise(times_s)]
    mean_s = sum(gaps) / len(gaps)

    def arrivals(rate_rps: float, count: int, seed: int) -> list[float]:
        start = random.Random(seed).randrange(len(gaps))
        return list(accumulate(gaps[(start + n) % len(gaps)] / mean_s / rate_rps for n in range(count)))

    return arrivals


def arrivals_by_name(name: str) -> Arrivals:
    """`poisson`, `constant`, or the path of a trace to replay. Raises TraceUnreadable."""
    by_name: dict[str, Arrivals] = {"poisson": poisson, "constant": constant}
    return by_name.get(name) or replay(read_trace(Path(name)))


def read_trace(path: Path) -> list[float]:
    """Seconds of each arrival, rising, from a CSV file.

    Reads `invoke_time_ms`, or `end_timestamp` with `duration` in seconds (Azure Functions Invocation
    Trace 2021). Raises TraceUnreadable for any other file, and for a file with fewer than two distinct times.
    """
    try:
        with path.open(newline="") as file:
            times = sorted(_arrival_s(row) for row in csv.DictReader(file))
    except (OSError, KeyError, ValueError, TypeError) as exc:
        raise TraceUnreadable(
            f"{path} is not a trace: {exc!r}. Give a CSV file with `invoke_time_ms`, or with"
            " `end_timestamp` and `duration`."
        ) from exc
    if len(times) < 2 or times[0] == times[-1]:
        raise TraceUnreadable(
            f"{path} has no two arrivals at different times. Give a trace with at least two."
        )
    return times


def _arrival_s(row: dict[str, str]) -> float:
    if "invoke_time_ms" in row:
        return float(row["invoke_time_ms"]) / 1e3
    return float(row["end_timestamp"]) - float(row["duration"])
