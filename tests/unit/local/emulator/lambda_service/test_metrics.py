"""Percentiles, histograms, rates and bills."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from coldframe.capacity.admission import Limits, State
from coldframe.capacity.prices import PRICES, Bill
from coldframe_local.emulator.lambda_service.lambda_types import Percentiles
from coldframe_local.emulator.lambda_service.telemetry.metrics import BUCKETS_S, FunctionMetrics, Latest, Rate
from coldframe_local.emulator.lambda_service.telemetry.prometheus import render


def test_percentiles_are_values_that_occurred() -> None:
    """By nearest rank: of 1 to 100 they are 50, 95 and 99."""
    latest = Latest()
    for value in range(100, 0, -1):
        latest.add(value)
    assert latest.percentiles() == Percentiles(50, 95, 99, 100)


def test_percentiles_of_nothing_are_zero() -> None:
    """No value, no percentile."""
    assert Latest().percentiles() == Percentiles(0, 0, 0)


def test_percentiles_forget_the_oldest() -> None:
    """Only the latest thousand count."""
    latest = Latest()
    for value in [1e9, *[1.0] * 1000]:
        latest.add(value)
    assert latest.percentiles().p99 == 1.0


@given(st.lists(st.floats(0.0, 60.0) | st.sampled_from(BUCKETS_S)))
def test_histogram_is_that_of_the_library(values_s: list[float]) -> None:
    """Counted here, a histogram is to Prometheus what its client library would have made of the values."""
    registry = CollectorRegistry()
    theirs = Histogram("lambda_duration_seconds", "", ["function"], registry=registry, buckets=BUCKETS_S)
    ours = FunctionMetrics("f", lambda: State(Limits()), Bill("x86_64", 0.0))
    of_f = theirs.labels("f")
    for value_s in values_s:
        of_f.observe(value_s)
        ours.duration_histogram.add(value_s)
    assert duration_samples(render([ours], 0.0)[1]) == duration_samples(generate_latest(registry))


def duration_samples(text: bytes) -> dict[tuple[str, str | None], float]:
    """By name and bound."""
    return {
        (sample.name, sample.labels.get("le")): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if family.name == "lambda_duration_seconds"
    }


@given(st.lists(st.floats(0.0, 60.0), max_size=200), st.floats(0.0, 20.0))
def test_rate_is_of_the_last_ten_seconds(times: list[float], later: float) -> None:
    """As a list of all times would tell it, by whole seconds."""
    rate, times = Rate(), sorted(times)
    for now in times:
        rate.add(now)
    now = (times[-1] if times else 0.0) + later
    assert rate.per_s(now) == sum(int(at) > int(now) - 10 for at in times) / 10


@pytest.mark.parametrize("architecture", PRICES)
def test_bill_adds_up(architecture: str) -> None:
    """A million seconds of 1 GB cost a million times the price of one; provisioned ones cost less."""
    prices = PRICES[architecture]
    bill = Bill(architecture, 0.0)
    bill.invocation(10**9, 1024, provisioned=False)
    assert bill.usd(0.0) == pytest.approx(prices.request_usd + 1e6 * prices.on_demand_gb_s_usd)
    provisioned = Bill(architecture, 0.0)
    provisioned.invocation(10**9, 1024, provisioned=True)
    provisioned.provisioned_init(1000.0, 1024)
    expected = prices.request_usd + (1e6 + 1) * prices.provisioned_duration_gb_s_usd
    assert provisioned.usd(0.0) == pytest.approx(expected)
    assert provisioned.usd(0.0) < bill.usd(0.0)


def test_provisioned_concurrency_is_billed_while_it_is_on() -> None:
    """Two for ten seconds, then one for five, then none, of 2 GB each."""
    bill = Bill("x86_64", 100.0)
    for concurrency, now in ((2, 100.0), (1, 110.0), (0, 115.0)):
        bill.provision(concurrency, 2048, now)
    expected = (2 * 10 + 1 * 5) * 2 * PRICES["x86_64"].provisioned_gb_s_usd
    assert bill.usd(1e6) == pytest.approx(expected)


def test_a_month_of_one_provisioned_environment() -> None:
    """1769 MB kept for 30 days on x86: 18.66 USD."""
    bill = Bill("x86_64", 0.0)
    bill.provision(1, 1769, 0.0)
    assert bill.usd(30 * 24 * 3600.0) == pytest.approx(18.66, abs=0.01)
