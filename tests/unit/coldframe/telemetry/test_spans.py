"""Spans of log lines: OpenTelemetry's names, and lines that are broken or forged."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.telemetry.spans import BrokenLine, Kind, spans_of
from tests.support.collectors import REQUEST_FIELDS, request_line

END_NS = 1_795_514_400_500_000_000


def test_a_request_is_a_server_span_and_a_span_per_block() -> None:
    request, cache, encode = spans_of(request_line())
    assert request.name == "POST /v1/predict"
    assert request.kind is Kind.SERVER
    assert (request.start_ns, request.end_ns) == (END_NS - 12_500_000, END_NS)
    assert (cache.name, encode.name) == ("cache", "encode")
    assert (cache.start_ns, cache.end_ns) == (request.start_ns + 1_000_000, request.start_ns + 1_500_000)
    assert cache.parent_id == encode.parent_id == request.span_id
    assert request.parent_id == REQUEST_FIELDS["parent_span_id"]


def test_names_of_attributes_are_opentelemetrys() -> None:
    attributes = spans_of(request_line())[0].attributes
    assert attributes["http.request.method"] == "POST"
    assert attributes["http.route"] == "/v1/predict"
    assert attributes["http.response.status_code"] == 200
    assert attributes["faas.coldstart"] is True
    assert attributes["faas.invocation_id"] == "r1"
    assert attributes["coldframe.model"] == "topics"


def test_only_a_defect_is_an_error() -> None:
    errors = [spans_of(request_line(status=status))[0].is_error for status in (200, 422, 500)]
    assert errors == [False, False, True]


def test_messages_of_a_job_are_a_consumer_span() -> None:
    fields = {
        **REQUEST_FIELDS,
        "event": "job",
        "job": "j1",
        "messages": 3,
        "spans_ms": [["answer", 0.5, 8.0]],
    }
    line = json.dumps({name: value for name, value in fields.items() if name not in ("method", "path")})
    messages, answer = spans_of(line.replace('": ', '":'))
    assert (messages.name, messages.kind) == ("process job", Kind.CONSUMER)
    assert messages.attributes["messaging.batch.message_count"] == 3
    assert messages.attributes["coldframe.job"] == "j1"
    assert answer.parent_id == messages.span_id


def test_a_line_that_is_read_twice_gives_the_same_ids() -> None:
    first, second = spans_of(request_line()), spans_of(request_line())
    assert first == second
    assert len({span.span_id for span in first}) == len(first)


@pytest.mark.parametrize("other", ["", "START RequestId: 8f5", '{"event":"ready"}'])
def test_other_lines_have_no_spans(other: str) -> None:
    assert spans_of(other) == []


@pytest.mark.parametrize(
    "broken",
    [
        '{"spans_ms":',
        '{"spans_ms":[]}',
        '["spans_ms":]',
        request_line(trace_id="not hex"),
        request_line(trace_id="0" * 32),
        request_line(span_id="0" * 16),
        request_line(parent_span_id="zz"),
        request_line(spans_ms=[["cache", "soon", 1]]),
        request_line(spans_ms=[["cache", 1]]),
        request_line(spans_ms=[["cache", 1.0, -1e6]]),
        request_line(time="yesterday"),
        request_line(time="1969-12-31T00:00:00Z"),
        request_line(duration_ms=float("inf")),
        request_line(duration_ms=float("nan")),
        request_line(duration_ms=-5),
        request_line(status="200"),
        request_line(usage="x" * 2_000_000)[1_048_576:] + '"spans_ms":',  # a long line is divided
        "[" * 100_000 + '"spans_ms":',
    ],
    ids=lambda line: line[:40],
)
def test_a_broken_line_is_told_without_its_content(broken: str) -> None:
    with pytest.raises(BrokenLine) as caught:
        spans_of(broken)
    assert str(caught.value).endswith("Leave it out.")
    assert len(str(caught.value)) < 100


def test_a_line_of_more_than_a_megabyte_has_its_spans_where_it_is_whole() -> None:
    assert len(spans_of(request_line(usage="x" * 2_000_000))) == 3


@given(st.text())
def test_any_text_gives_spans_or_a_broken_line(text: str) -> None:
    for line in (text, '{"spans_ms":' + text):
        with contextlib.suppress(BrokenLine):
            assert spans_of(line) == []


@given(
    st.dictionaries(
        st.sampled_from(sorted(REQUEST_FIELDS)),
        st.none() | st.integers() | st.floats() | st.text() | st.lists(st.text()),
    )
)
def test_any_field_gives_spans_in_order_of_time_or_a_broken_line(fields: dict[str, Any]) -> None:
    try:
        spans = spans_of(request_line(**fields))
    except BrokenLine:
        return
    for span in spans:
        assert 0 <= span.start_ns <= span.end_ns < 2**63


def test_a_wall_clock_that_jumps_moves_a_request_and_never_stretches_it() -> None:
    before, after = (spans_of(request_line(time=f"2026-11-24T{hour}:00:00Z"))[0] for hour in ("10", "09"))
    assert before.end_ns - before.start_ns == after.end_ns - after.start_ns
