"""Energy is an interval that grows with memory and time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.capacity.energy import energy_of

_GB_SECONDS = st.floats(0.0, 1e9)


def test_an_hour_of_a_vcpu() -> None:
    """An hour of 1,769 MB takes the watts of one vCPU and of its memory, times the building's share."""
    energy = energy_of(3600 * 1769 / 1024)
    memory_w = 0.392 * 1769 / 1024
    assert energy.low_wh == pytest.approx((0.74 + memory_w) * 1.04)
    assert energy.high_wh == pytest.approx((3.5 + memory_w) * 1.15)
    assert str(energy) == "1.5 to 4.8 Wh"


@given(_GB_SECONDS, _GB_SECONDS)
def test_energy_adds_up(first: float, second: float) -> None:
    """Two works take what each takes, and the lower end is never above the upper one."""
    whole, parts = energy_of(first + second), (energy_of(first), energy_of(second))
    assert whole.low_wh == pytest.approx(sum(part.low_wh for part in parts))
    assert whole.high_wh == pytest.approx(sum(part.high_wh for part in parts))
    assert 0 <= whole.low_wh <= whole.high_wh
