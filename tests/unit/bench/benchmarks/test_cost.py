"""Cost is arithmetic over durations, memory and prices."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe_bench.benchmarks.cost import Measured, costs, load_prices

PRICES = load_prices()
MEASURED = Measured(invocations_ms=[9.2, 10.8], hits_ms=[0.4], cold_ms=300.0, peak_mb=200.0)


def test_one_by_hand() -> None:
    """10.5 ms billed at 1769 MB on x86: GB-seconds at their price, and the request."""
    found = next(c for c in costs(MEASURED, PRICES) if (c.architecture, c.memory_mb) == ("x86_64", 1769))
    assert found.mean_ms == pytest.approx(10.5)
    assert found.on_demand == pytest.approx(0.0105 * 1769 / 1024 * 16.6667 + 0.2)
    assert found.all_hits == pytest.approx(0.001 * 1769 / 1024 * 16.6667 + 0.2)
    assert found.cold_starts == pytest.approx(0.3 * 1769 / 1024 * 16.6667)
    assert found.snapstart_cold_starts == pytest.approx(241.5, rel=0.01)
    assert found.snapstart_month_usd == pytest.approx(6.74, rel=0.01)
    memory_w = 0.392 * 1769 / 1024
    assert found.energy.low_wh == pytest.approx(10.5 / 3600 * (0.74 + memory_w) * 1.04)
    assert found.energy.high_wh == pytest.approx(10.5 / 3600 * (3.5 + memory_w) * 1.15)


def test_sizes_that_do_not_fit_are_left_out() -> None:
    """A memory size under the peak that was measured is not a choice."""
    large = Measured([10.0], [1.0], 300.0, peak_mb=900.0)
    assert {cost.memory_mb for cost in costs(large, PRICES)} == {1024, 1769, 3008}


@given(st.floats(0.1, 500))
def test_laws(ms: float) -> None:
    """arm64 is cheaper than x86, a hit is no dearer than computing, less CPU takes longer."""
    found = {
        (cost.architecture, cost.memory_mb): cost
        for cost in costs(Measured([ms], [min(ms, 0.5)], 300.0, 100.0), PRICES)
    }
    for (architecture, memory_mb), cost in found.items():
        assert cost.all_hits <= cost.on_demand
        assert cost.table_break_even > 0
        assert cost.container_wins_rps > 0
        if architecture == "x86_64":
            assert found["arm64", memory_mb].on_demand < cost.on_demand
    assert found["arm64", 512].mean_ms >= ms * 1769 / 512


def test_table_never_pays_for_what_is_cheap() -> None:
    """Where computing costs less than asking, no share of hits makes the table pay."""
    cheap = costs(Measured([0.5], [0.5], 300.0, 100.0), PRICES)
    dear = costs(Measured([900.0], [0.5], 300.0, 100.0), PRICES)
    assert all(cost.table_break_even > 1 for cost in cheap)
    assert all(cost.table_break_even < 0.5 for cost in dear)


def test_prices_have_sources() -> None:
    """Every kind of price names the page that it is from."""
    assert set(PRICES.source) == {"fargate", "dynamodb"}
    assert all(url.startswith("https://aws.amazon.com/") for url in PRICES.source.values())
