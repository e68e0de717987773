"""OTLP in JSON: OpenTelemetry's own classes read it, and no request is over a limit."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.telemetry.otlp_json import (
    EncodedSpan,
    Limits,
    batches,
    encode_span,
    is_in_time,
    rejected_spans,
)
from coldframe.telemetry.spans import Span, spans_of
from tests.support.collectors import Collector, request_line

JSON = {"content-type": "application/json"}
RESOURCE = {"service.name": "test", "faas.instance": '2026/11/24/[1]f"[]'}


def one_span() -> Span:
    return spans_of(request_line())[0]


def test_both_forms_of_otlp_say_the_same() -> None:
    collector = Collector()
    [batch] = batches(map(encode_span, spans_of(request_line(status=500))), RESOURCE)
    collector.take("/v1/traces", batch.body, JSON)
    request = collector.spans[0]
    assert batch.spans == 3
    for sent, span in zip(collector.spans, spans_of(request_line(status=500)), strict=True):
        assert (sent.name, sent.trace_id.hex(), sent.span_id.hex()) == (
            span.name,
            span.trace_id,
            span.span_id,
        )
        assert sent.parent_span_id.hex() == span.parent_id
        assert (sent.start_time_unix_nano, sent.end_time_unix_nano) == (span.start_ns, span.end_ns)
        assert int(sent.kind) == int(span.kind)
    assert request.status.code == 2
    values = {fact.key: fact.value for fact in request.attributes}
    assert values["http.response.status_code"].int_value == 500
    assert values["faas.coldstart"].bool_value is True
    assert values["http.route"].string_value == "/v1/predict"
    assert collector.services == {"test"}


@given(
    st.lists(st.tuples(st.integers(1, 400), st.integers(0, 80)), max_size=40),
    st.integers(800, 3000),
    st.integers(1, 10),
)
def test_no_request_is_over_a_limit_and_no_span_is_lost(
    sizes: list[tuple[int, int]], request_bytes: int, request_spans: int
) -> None:
    limits = Limits(request_bytes=request_bytes, request_spans=request_spans)
    spans = [
        EncodedSpan(json.dumps([hour, "x" * size]).encode(), hour * 3_600_000_000_000) for size, hour in sizes
    ]
    sent = list(batches(spans, RESOURCE, limits))
    assert all(len(batch.body) <= request_bytes for batch in sent)
    assert all(1 <= batch.spans <= request_spans for batch in sent)
    scopes = [json.loads(batch.body)["resourceSpans"][0]["scopeSpans"][0]["spans"] for batch in sent]
    assert [span for scope in scopes for span in scope] == [[hour, "x" * size] for size, hour in sizes]
    assert all(max(hours) - min(hours) <= 24 for hours in ([hour for hour, _ in scope] for scope in scopes))


@pytest.mark.parametrize(
    ("days_later", "is_sent"), [(0, True), (13.9, True), (14.1, False), (-0.08, True), (-0.09, False)]
)
def test_spans_of_another_time_are_told(days_later: float, is_sent: bool) -> None:
    span = one_span()
    assert is_in_time(span, span.end_ns / 1e9 + days_later * 86_400) is is_sent


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        (b"{}", 0),
        (b'{"partialSuccess":{"rejectedSpans":"3"}}', 3),
        (b'{"partialSuccess":{"rejectedSpans":3,"errorMessage":"no"}}', 3),
        (b'{"partialSuccess":{}}', 0),
        (b'{"partialSuccess":null}', 0),
        (b'{"partialSuccess":{"rejectedSpans":"-3"}}', 0),
        (b"", 0),
        (b"<html>", 0),
        (b"[]", 0),
        (b"\xff", 0),
    ],
)
def test_a_partial_success_is_counted(answer: bytes, count: int) -> None:
    assert rejected_spans(answer) == count


@given(st.text(), st.dictionaries(st.text(), st.booleans() | st.integers(0, 2**31) | st.text()))
def test_any_attribute_can_be_read_back(name: str, attributes: Any) -> None:
    span = one_span()._replace(name=name, attributes=attributes)
    read = json.loads(encode_span(span).content)
    assert (read["name"], len(read["attributes"])) == (name, len(attributes))
