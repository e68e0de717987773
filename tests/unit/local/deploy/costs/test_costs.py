"""Costs of platforms, held to their own formulas."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe_local.deploy.costs.costs import Costs, Work, costs
from coldframe_local.deploy.costs.costs_table import table
from coldframe_local.planner.scenarios.prices import PricesUnusable, load_prices

REGION = load_prices().region("us-east-1")
works = st.builds(
    Work,
    st.floats(0.1, 100),
    st.integers(1, 100),
    st.floats(0, 10),
    st.floats(0.5, 5),
    st.floats(0.1, 1),
)


def found(work: Work, gpu_texts_s: float | None = None) -> Costs:
    """With containers of one vCPU and 2 GB."""
    return costs(REGION, "x86_64", work, 1.0, 2048, gpu_texts_s)


@settings(deadline=None)
@given(works)
def test_break_even_is_where_both_cost_the_same(work: Work) -> None:
    """Just below it Lambda is the cheaper one, just above it the container is."""
    of = found(work)
    rate = of.container_pays_from
    if rate is None:
        assert of.lambda_usd(of.container.texts_s) < of.container.month_usd
        return
    assert of.lambda_usd(rate * 0.99) < of.containers_usd(rate * 0.99)
    assert of.lambda_usd(rate * 1.01) > of.container.month_usd


@settings(deadline=None)
@given(works)
def test_gpu_pays_where_as_many_containers_cost_more(work: Work) -> None:
    """At ten times its break-even the containers cost ten times the GPU, but for a part of one container."""
    of = found(work)
    for gpu in of.gpus:
        rate = 10 * of.gpu_pays_from(gpu)
        assert of.containers_usd(rate) == pytest.approx(10 * gpu.month_usd, abs=of.container.month_usd)


def test_sums_by_hand() -> None:
    """One text of 9 ms in a request of 1 ms, at a text a second."""
    of = found(Work(9.0))
    gb_s = 730 * 3600 * 0.010 * 1769 / 1024
    assert of.lambda_usd(1.0) == pytest.approx(gb_s * 0.0000166667 + 730 * 3600 * 0.20e-6)
    assert of.container.month_usd == pytest.approx(730 * (0.04048 + 2 * 0.004445))
    assert of.container.texts_s == pytest.approx(70)
    [l4] = [gpu for gpu in of.gpus if gpu.name == "L4"]
    assert l4.month_usd == pytest.approx(730 * 0.8048)


def test_table_says_what_nobody_has_measured() -> None:
    """Without a figure for the GPU the table says so; with one, a rate beyond it is too much for it."""
    assert "not yet measured" in table(found(Work(9.0)), [1.0])
    measured = table(found(Work(9.0), gpu_texts_s=5_000), [1.0, 10_000.0])
    assert "not yet measured" not in measured
    assert "5,000 texts/s" in measured
    assert "too many" in measured


def test_unknown_architecture_is_named() -> None:
    """The error lists what there are prices for."""
    with pytest.raises(PricesUnusable, match="x86_64, arm64"):
        costs(REGION, "riscv", Work(1.0), 1.0, 2048)
