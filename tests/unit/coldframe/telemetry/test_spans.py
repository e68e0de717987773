"""Spans of log lines: OpenTelemetry's form, and a collector that misbehaves."""

import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import SpanKind, StatusCode

from coldframe.telemetry.spans import open_sender, spans_of
from tests.support.collectors import collecting

RESOURCE = Resource.create({"service.name": "test"})
FIELDS: dict[str, Any] = {
    "time": "2026-11-24T10:00:00.500000Z",
    "event": "request",
    "request_id": "r1",
    "method": "POST",
    "path": "/v1/predict",
    "status": 200,
    "start": "cold",
    "duration_ms": 12.5,
    "model": "topics",
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    "span_id": "00f067aa0ba902b7",
    "parent_span_id": "53995c3f42cd8ad8",
    "sampled": True,
    "spans_ms": [["cache", 1.0, 0.5], ["encode", 2.0, 8.0]],
}
END_NS = 1_795_514_400_500_000_000


def line(**fields: Any) -> str:
    return json.dumps(FIELDS | fields, separators=(",", ":"))


def test_a_request_is_a_server_span_and_a_span_per_block() -> None:
    request, cache, encode = spans_of(line(), RESOURCE)
    assert request.name == "POST /v1/predict"
    assert request.kind is SpanKind.SERVER
    assert (request.start_time, request.end_time) == (END_NS - 12_500_000, END_NS)
    assert (cache.name, encode.name) == ("cache", "encode")
    assert request.start_time is not None
    assert (cache.start_time, cache.end_time) == (
        request.start_time + 1_000_000,
        request.start_time + 1_500_000,
    )
    assert cache.parent == encode.parent == request.context
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == FIELDS["parent_span_id"]


def test_names_of_attributes_are_opentelemetrys() -> None:
    attributes = spans_of(line(), RESOURCE)[0].attributes or {}
    assert attributes["http.request.method"] == "POST"
    assert attributes["http.route"] == "/v1/predict"
    assert attributes["http.response.status_code"] == 200
    assert attributes["faas.coldstart"] is True
    assert attributes["faas.invocation_id"] == "r1"
    assert attributes["coldframe.model"] == "topics"


def test_only_a_defect_is_an_error() -> None:
    codes = [spans_of(line(status=status), RESOURCE)[0].status.status_code for status in (200, 422, 500)]
    assert codes == [StatusCode.UNSET, StatusCode.UNSET, StatusCode.ERROR]


def test_a_line_that_is_read_twice_gives_the_same_ids() -> None:
    first, second = spans_of(line(), RESOURCE), spans_of(line(), RESOURCE)
    assert [span.context for span in first] == [span.context for span in second]
    ids = {span.context.span_id for span in first if span.context is not None}
    assert len(ids) == len(first)


@pytest.mark.parametrize(
    "other",
    [
        "",
        "START RequestId: 8f5",
        '{"event":"ready"}',
        '{"spans_ms":',
        '{"spans_ms":[]}',
        line(trace_id="not hex"),
        line(parent_span_id="zz"),
        line(spans_ms=[["cache", "soon", 1]]),
        line(time="yesterday"),
        "x" * 2_000_000 + '"spans_ms":',
    ],
)
def test_other_lines_have_no_spans(other: str) -> None:
    assert spans_of(other, RESOURCE) == []


@given(st.text())
def test_no_line_raises(text: str) -> None:
    spans_of(text, RESOURCE)
    spans_of('{"spans_ms":' + text, RESOURCE)


def test_a_collector_gets_every_span_once() -> None:
    with collecting() as collector:
        sender = open_sender("test", collector.url + "/")
        for number in range(100):
            sender(line(span_id=f"{number + 1:016x}"))
        sender.close(patience_s=60)
        assert sender.lost == 0
    assert len(collector.spans) == 300
    assert len({span.span_id for span in collector.spans}) == 300
    assert collector.services == {"test"}
    assert set(collector.paths) == {"/v1/traces"}


def test_a_collector_that_refuses_for_a_moment_is_called_again() -> None:
    with collecting() as collector:
        collector.statuses = [429, 503]
        sender = open_sender("test", collector.url)
        sender(line())
        assert collector.wait_for(lambda: len(collector.spans) == 3)
        sender.close()
        assert sender.lost == 0
    assert len(collector.paths) == 3


def test_spans_that_a_collector_refuses_are_counted() -> None:
    with collecting() as collector:
        collector.statuses = [400]
        sender = open_sender("test", collector.url)
        sender(line())
        sender.close(patience_s=60)
        assert sender.lost == 3
    assert collector.spans == []


def test_a_partial_success_is_no_reason_to_send_again() -> None:
    with collecting() as collector:
        collector.rejected_spans = 1
        sender = open_sender("test", collector.url)
        sender(line())
        sender.close(patience_s=60)
    assert len(collector.paths) == 1


def test_a_collector_that_is_down_keeps_no_process_alive() -> None:
    with collecting() as collector:
        url = collector.url
    others = set(threading.enumerate())
    sender = open_sender("test", url)
    for number in range(10_000):
        sender(line(span_id=f"{number + 1:016x}"))
    sender.close(patience_s=0)
    assert all(thread.daemon for thread in set(threading.enumerate()) - others)
