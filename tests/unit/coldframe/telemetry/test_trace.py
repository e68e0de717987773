"""Trace context: W3C's `traceparent`, X-Ray's header, and everything that callers send instead."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.telemetry.trace import Trace, continue_trace

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
VALID = f"00-{TRACE}-{PARENT}-01"
XRAY = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"


def counted(size: int) -> bytes:
    return bytes(range(1, size + 1))


def test_a_traceparent_is_continued() -> None:
    trace = continue_trace({"traceparent": VALID}, random_bytes=counted)
    assert trace == Trace(TRACE, "0102030405060708", PARENT, is_sampled=True)
    assert trace.traceparent == f"00-{TRACE}-0102030405060708-01"


def test_an_unsampled_trace_stays_unsampled() -> None:
    trace = continue_trace({"traceparent": VALID[:-2] + "00"})
    assert not trace.is_sampled
    assert trace.traceparent.endswith("-00")


def test_a_later_version_may_append_fields() -> None:
    assert continue_trace({"traceparent": f"cc-{TRACE}-{PARENT}-01-more"}).trace_id == TRACE


@pytest.mark.parametrize(
    "header",
    [
        "",
        "00",
        VALID[:-1],
        VALID + "-more",  # version 00 has four fields
        VALID.upper(),
        VALID.replace("00-", "ff-", 1),
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        VALID + "\n",
        VALID.replace("4", "\N{FULLWIDTH DIGIT FOUR}"),
        VALID + "-" + "x" * 1_000_000,
        f"cc-{TRACE}-{PARENT}-01-" + "x" * 1_000_000,
        f"{VALID}, {VALID}",
    ],
)
def test_a_malformed_traceparent_starts_a_new_trace(header: str) -> None:
    trace = continue_trace({"traceparent": header})
    assert trace.trace_id != TRACE
    assert trace.parent_id == ""
    assert trace.is_sampled


def test_an_xray_header_is_continued_and_returned() -> None:
    headers = {"x-amzn-trace-id": XRAY}
    trace = continue_trace(headers, random_bytes=counted)
    assert trace.trace_id == "5759e988bd862e3fe1be46a994272793"
    assert trace.parent_id == "53995c3f42cd8ad8"
    assert trace.reply_headers(headers)["x-amzn-trace-id"] == (
        "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=0102030405060708;Sampled=1"
    )


def test_a_caller_without_xray_gets_no_header_of_it() -> None:
    assert set(continue_trace({}).reply_headers({})) == {"traceparent"}


@pytest.mark.parametrize(
    "header",
    [
        "Root=1-5759e988-bd862e3fe1be46a99427279",
        "Self=1-5759e988-bd862e3fe1be46a994272793",
        "=;=;=",
        ";" * 600,
    ],
)
def test_a_malformed_xray_header_starts_a_new_trace(header: str) -> None:
    assert continue_trace({"x-amzn-trace-id": header}).parent_id == ""


def test_headers_come_in_the_documented_order() -> None:
    headers = {"traceparent": VALID, "x-amzn-trace-id": XRAY}
    platform = XRAY.replace("5759e988", "11111111")
    assert continue_trace(headers, platform).trace_id == TRACE
    assert continue_trace({"x-amzn-trace-id": XRAY}, platform).trace_id.startswith("5759e988")
    assert continue_trace({}, platform).trace_id.startswith("11111111")


def test_an_unsampled_platform_trace_stays_unsampled() -> None:
    assert not continue_trace({}, XRAY.replace("Sampled=1", "Sampled=0")).is_sampled


def test_an_id_of_zeros_is_drawn_again() -> None:
    drawn = iter([bytes(8), b"\x01" * 8, bytes(16), b"\x02" * 16])
    trace = continue_trace({}, random_bytes=lambda size: next(drawn))
    assert (trace.span_id, trace.trace_id) == ("01" * 8, "02" * 16)


@given(st.text(), st.text(), st.text())
def test_any_headers_give_a_valid_trace(traceparent: str, xray: str, platform: str) -> None:
    trace = continue_trace({"traceparent": traceparent, "x-amzn-trace-id": xray}, platform)
    assert re.fullmatch(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-0[01]", trace.traceparent, re.ASCII)
    assert re.fullmatch(r"|[0-9a-f]{16}", trace.parent_id, re.ASCII)


@given(st.booleans())
def test_a_trace_is_continued_through_either_header(is_sampled: bool) -> None:
    trace = continue_trace({"traceparent": VALID if is_sampled else VALID[:-1] + "0"})
    by_w3c = continue_trace({"traceparent": trace.traceparent})
    by_xray = continue_trace({"x-amzn-trace-id": trace.xray_header})
    for later in (by_w3c, by_xray):
        assert (later.trace_id, later.parent_id, later.is_sampled) == (TRACE, trace.span_id, is_sampled)
