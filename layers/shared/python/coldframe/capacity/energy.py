"""Energy of Lambda's environments, as an interval: no counter shows it there.

The processor's watts are published averages of an idle and of a fully busy vCPU on AWS, the memory's watts
an average, and the building's share (PUE) is AWS's own report. Making the machines is left out, and so is
provisioned concurrency that waits. Graviton has no published figure for a vCPU and counts as the rest.
Sources: Cloud Carbon Footprint, AWS constants (0.74 and 3.5 W per vCPU, 0.392 W per GB),
https://www.cloudcarbonfootprint.org/docs/methodology/; PUE of 2024, best site 1.04 and mean 1.15,
https://aws.amazon.com/sustainability/data-centers/, all read 2026-11-24.
"""

from typing import NamedTuple

from coldframe.capacity.limits import VCPU

_IDLE_W, _BUSY_W = 0.74, 3.5
_MEMORY_W_PER_GB = 0.392
_BEST_PUE, _MEAN_PUE = 1.04, 1.15
_MB_PER_GB = 1024


class Energy(NamedTuple):
    """Watt-hours, at least and at most."""

    low_wh: float
    high_wh: float

    def __str__(self) -> str:
        return f"{self.low_wh:.2g} to {self.high_wh:.2g} Wh"


def energy_of(gb_s: float) -> Energy:
    """Energy of environments that work. gb_s: their memory times their billed seconds."""
    vcpu_s = gb_s * _MB_PER_GB / VCPU.value
    memory_ws = _MEMORY_W_PER_GB * gb_s
    low_ws, high_ws = (_IDLE_W * vcpu_s + memory_ws, _BUSY_W * vcpu_s + memory_ws)
    return Energy(low_ws * _BEST_PUE / 3600, high_ws * _MEAN_PUE / 3600)
