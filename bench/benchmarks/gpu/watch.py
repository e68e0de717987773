"""Watch of a GPU while something runs: busy share and power, as nvidia-smi says every 100 ms."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import mean

_EVERY_MS = 100
_QUERY = ["nvidia-smi", "--query-gpu=utilization.gpu,power.draw", "--format=csv,noheader,nounits", "-i", "0"]


@dataclass
class Watched:
    """Readings; filled when the block ends. busy: share of the time in which any kernel ran."""

    busy: list[float] = field(default_factory=list)
    power_w: list[float] = field(default_factory=list)

    @property
    def mean_busy(self) -> float | None:
        return mean(self.busy) if self.busy else None

    @property
    def mean_power_w(self) -> float | None:
        return mean(self.power_w) if self.power_w else None


@contextmanager
def watch() -> Iterator[Watched]:
    """Watches the first GPU during the block; without nvidia-smi there are no readings."""
    watched = Watched()
    try:
        process = subprocess.Popen([*_QUERY, f"-lms={_EVERY_MS}"], stdout=subprocess.PIPE, text=True)
    except OSError:
        yield watched
        return
    try:
        yield watched
    finally:
        process.terminate()
        _read(process.communicate()[0], watched)


def _read(lines: str, watched: Watched) -> None:
    for line in lines.splitlines():
        busy, _, power = line.partition(",")
        try:
            reading = float(busy) / 100, float(power)
        except ValueError:  # "[N/A]", or a line cut off at the end
            continue
        watched.busy.append(reading[0])
        watched.power_w.append(reading[1])
